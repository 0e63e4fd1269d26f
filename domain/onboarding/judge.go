package onboarding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// contracts checks everything that was recorded of the version's instances against the public contract. Something that
// was written to the database without a call shows as rows that no call accounts for.
func contracts(f *Facts) *Check {
	const remedy = "launch the version in a project that is entitled to the app, and let its adapter do everything " +
		"over the public API with the operation's token"
	spoken := slices.ContainsFunc(f.Contracts, func(v string) bool { return v == "1" || strings.HasPrefix(v, "1.") })
	strangers := slices.DeleteFunc(slices.Clone(f.Instances), func(i *Instance) bool { return i.Entitled || i.Smoke })
	is := func(v Verdict, evidence []*Evidence, format string, args ...any) *Check {
		return verdict(ContractsOnly, v, evidence, remedy, format, args...)
	}
	switch {
	case len(f.Calls.Hidden) > 0:
		return is(Failed, rowsOf(f.Calls.Hidden, "not accounted for"), "its instances have %s without a recorded call",
			count(len(f.Calls.Hidden), "row"))
	case len(f.Calls.Refused) > 0:
		return is(Failed, rowsOf(f.Calls.Refused, "FORBIDDEN"), "its adapter made %s that its tokens do not permit",
			count(len(f.Calls.Refused), "call"))
	case len(strangers) > 0:
		return is(Failed, instancesOf(strangers, "not entitled"), "%s in projects that are not entitled to the app",
			count(len(strangers), "instance"))
	case len(f.Contracts) > 0 && !spoken:
		return is(Failed, nil, "adapter %s does not support version 1 of the contract, only %s", f.Adapter,
			strings.Join(f.Contracts, ", "))
	case len(f.Contracts) == 0:
		return is(NotKnown, nil, "adapter %s has never described itself", f.Adapter)
	case f.Calls.Count == 0:
		return is(NotKnown, nil, "no call of its adapter for an instance of this version is recorded")
	}
	out := is(Passed, instancesOf(f.Instances[:min(len(f.Instances), 3)], ""),
		"%s of its adapter for %s, all through the public API, and they account for every row; a connection to the "+
			"database that wrote nothing would not be found", count(f.Calls.Count, "recorded call"),
		count(len(f.Instances), "instance"))
	out.At = f.Calls.At
	return out
}

// account looks for service accounts among those that act for the version.
func account(f *Facts) *Check {
	const remedy = "create a service account in the publishing project, and publish, report and launch with its key " +
		"(appctl admin service-account create); or name one for the adapter or an instance"
	var living, ended, others []*Evidence
	for _, one := range f.Accounts {
		each := &Evidence{ID: &one.ID, What: one.What + ": " + one.Name, At: one.At, Of: one.Of}
		if one.Live {
			living = append(living, each)
			continue
		}
		each.State = "deleted"
		ended = append(ended, each)
	}
	for _, act := range f.Acts {
		each := &Evidence{ID: &act.ID, What: act.What, At: act.At, Of: act.Of}
		switch {
		case act.Account == "":
			each.State = "by a person"
			others = append(others, each)
		case act.Live:
			each.What += " by " + act.Name
			living = append(living, each)
		default:
			each.What, each.State = each.What+" by "+act.Name, "deleted"
			ended = append(ended, each)
		}
	}
	switch {
	case len(living) > 0:
		return verdict(ServiceAccount, Passed, living, remedy, "a service account acts for it")
	case len(ended) > 0:
		return verdict(ServiceAccount, Failed, ended, remedy, "the service accounts that acted for it are deleted")
	case len(others) > 0:
		return verdict(ServiceAccount, Failed, others, remedy, "only people have acted for it")
	}
	return verdict(ServiceAccount, NotKnown, nil, remedy, "no action on this version is recorded here")
}

// boundary takes the newest report of the tests between tenants, which is the first in the facts.
func boundary(f *Facts) *Check {
	remedy := fmt.Sprintf("run the tests between tenants on a registered runner with build %s of adapter %s, and "+
		"submit the signed report: appctl evidence submit --kind tenancy --signature", f.Build, f.Adapter)
	at := slices.IndexFunc(f.Reports, func(r *Report) bool { return r.Kind == string(lifecycle.EvidenceTenancy) })
	if at < 0 {
		return verdict(TenantBoundary, NotKnown, nil, remedy,
			"no report of the tests between tenants was submitted for build %q", f.Build)
	}
	last := f.Reports[at]
	evidence := []*Evidence{{ID: &last.ID, What: "report of the tests between tenants", State: "passed", At: last.At}}
	switch {
	case !last.Passed:
		evidence[0].State = "failed"
		return verdict(TenantBoundary, Failed, evidence, remedy,
			"the newest report has not passed: %s failed; required and not passed: %s",
			count(last.Failed, "clause"), strings.Join(last.Missing, ", "))
	case last.Runner == "":
		evidence[0].State = "not signed"
		return verdict(TenantBoundary, Failed, evidence, remedy,
			"the newest report has passed, and no registered runner has signed it")
	}
	return verdict(TenantBoundary, Passed, evidence, remedy,
		"the tests between tenants have passed, signed by runner %s", last.Runner)
}

// sources checks each pinned artifact against where it comes from.
func sources(f *Facts) *Check {
	const remedy = "publish each artifact from a registered source whose signatures are checked (appctl source " +
		"list), and pin " +
		"that in a version"
	var bad, good []*Evidence
	for _, one := range f.Artifacts {
		each := &Evidence{ID: &one.ID, What: one.Name, State: "from " + one.Source, At: one.At}
		switch {
		case one.Source == "":
			each.State = "from no registered source"
		case one.Off:
			each.State = "from source " + one.Source + ", which is switched off"
		case one.Quarantine != "":
			each.State = "in quarantine: " + one.Quarantine
		case one.Denied != "":
			each.State = one.Denied
		case one.Needed && one.Signed != string(lifecycle.SignatureVerified):
			each.State = "without the signature that source " + one.Source + " requires"
		default:
			good = append(good, each)
			continue
		}
		bad = append(bad, each)
	}
	switch {
	case len(bad) > 0:
		return verdict(ArtifactSources, Failed, bad, remedy, "%s not from a source that policy allows",
			count(len(bad), "artifact"))
	case len(good) == 0:
		return verdict(ArtifactSources, NotKnown, nil, remedy, "none of its artifacts can be seen")
	}
	return verdict(ArtifactSources, Passed, good, remedy, "%s, each from a registered source that policy allows",
		count(len(good), "artifact"))
}

// way is one of the three behaviours.
type way struct {
	name   string
	kind   lifecycle.OperationKind
	clause string
	mode   func(*manifest.Lifecycle) string
}

var ways = []way{
	{"upgrade", lifecycle.InstanceUpgrade, "upgrade.completes", func(l *manifest.Lifecycle) string {
		return l.Upgrade.Mode
	}},
	{"rollback", lifecycle.InstanceRollback, "rollback.completes", func(l *manifest.Lifecycle) string {
		return l.Rollback.Mode
	}},
	{"delete", lifecycle.InstanceDecommission, "decommission.clean", func(l *manifest.Lifecycle) string {
		return l.Delete.Mode
	}},
}

// unsupported is the mode of a way that the manifest says there is not. It is defined then, and cannot be walked.
const unsupported = "unsupported"

// walked looks for each declared way among what was carried out, and else among what the suite has proved.
func walked(f *Facts) *Check {
	const remedy = "declare lifecycle.upgrade, rollback and delete in the manifest, and carry each out on an " +
		"instance of the " +
		"version (appctl instances upgrade, instances rollback, decommission), or submit a conformance report with them"
	if f.Lifecycle == nil {
		return verdict(LifecycleWalked, Failed, nil, remedy,
			"the manifest declares no behaviour of upgrade, rollback and deletion")
	}
	var done, failed []*Evidence
	var missing, broken []string
	for _, one := range ways {
		if one.mode(f.Lifecycle) == unsupported {
			done = append(done, &Evidence{What: one.name, State: "declared as unsupported"})
			continue
		}
		evidence, ok := one.evidence(f)
		switch {
		case ok:
			done = append(done, evidence)
		case evidence != nil:
			failed, broken = append(failed, evidence), append(broken, one.name)
		default:
			missing = append(missing, one.name)
		}
	}
	switch {
	case len(broken) > 0:
		return verdict(LifecycleWalked, Failed, append(failed, done...), remedy, "every attempt has failed: %s",
			strings.Join(broken, ", "))
	case len(missing) > 0:
		return verdict(LifecycleWalked, NotKnown, done, remedy, "not carried out yet: %s", strings.Join(missing, ", "))
	}
	return verdict(LifecycleWalked, Passed, done, remedy,
		"upgrade, rollback and deletion are declared, and each that is supported was "+
			"carried out")
}

// evidence is what shows that the way was walked; false with the newest failure, or with nothing, where none does.
func (w way) evidence(f *Facts) (*Evidence, bool) {
	var failed *Evidence
	for _, walk := range f.Walks {
		if walk.Kind != string(w.kind) {
			continue
		}
		each := &Evidence{ID: &walk.ID, What: w.name + walk.words(), State: "succeeded", At: walk.At, Of: walk.Of}
		if walk.Succeeded {
			return each, true
		}
		each.State = "failed"
		if failed == nil {
			failed = each
		}
	}
	for _, report := range f.Reports {
		if report.Kind == string(lifecycle.EvidenceConformance) && report.Passed && report.Runner != "" &&
			slices.Contains(report.Clauses, w.clause) {
			return &Evidence{ID: &report.ID, What: w.name, State: "clause " + w.clause + " passed", At: report.At}, true
		}
	}
	return failed, false
}

// words are the versions of a walk.
func (w *Walk) words() string {
	switch {
	case w.From == "" || w.To == "":
		return ""
	case w.From == w.To:
		return " of the configuration, " + w.To
	}
	return " from " + w.From + " to " + w.To
}

// runbooks looks for one whose triage begins from the correlation id.
func runbooks(f *Facts) *Check {
	const remedy = "give at least one of the manifest's runbooks the steps of triage: triage[0].by is " +
		"correlation_id, and another step follows"
	var first, other []*Evidence
	for _, one := range f.Runbooks {
		each := &Evidence{URL: one.URL, What: one.Title}
		if one.CorrelationFirst() {
			each.State = "triage in " + count(len(one.Triage), "step") + ", correlation id first"
			first = append(first, each)
			continue
		}
		each.State = "without correlation-first triage"
		other = append(other, each)
	}
	switch {
	case len(first) > 0:
		return verdict(SupportRunbook, Passed, first, remedy, "%s with correlation-first triage",
			count(len(first), "runbook"))
	case len(other) > 0:
		return verdict(SupportRunbook, Failed, other, remedy,
			"none of its runbooks has triage that begins with the correlation id")
	}
	return verdict(SupportRunbook, Failed, nil, remedy, "the manifest names no runbook")
}

func rowsOf(rows []*Row, state string) []*Evidence {
	out := make([]*Evidence, len(rows))
	for i, row := range rows {
		out[i] = &Evidence{ID: &row.ID, What: row.What, State: state, At: row.At, Of: row.Of}
	}
	return out
}

func instancesOf(instances []*Instance, state string) []*Evidence {
	out := make([]*Evidence, len(instances))
	for i, one := range instances {
		out[i] = &Evidence{ID: &one.ID, What: "instance", State: state, At: one.At, Of: one.Of}
	}
	return out
}
