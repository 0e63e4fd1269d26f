package verdict

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// moves reports whether an upgrade leads to another version; a change of config alone does not.
func (v *Verdicts) moves() bool {
	return v.Kind == lifecycle.InstanceUpgrade && v.Target != nil && v.Target.ID != v.Stored.ID
}

// evaluatePolicy asks policy once the state allows the change; before that there is nothing to judge when members come
// or versions change.
func (v *Verdicts) evaluatePolicy(ctx context.Context, t *tx.Tx) error {
	switch {
	case v.Terms == nil:
		return v.answer(lifecycle.VerdictPolicy, nil)
	case v.List[0].Outcome == lifecycle.VerdictRefused:
		v.skip(lifecycle.VerdictPolicy)
		return nil
	case v.Kind == lifecycle.InstanceUpgrade:
		return v.answer(lifecycle.VerdictPolicy, v.versionPermitted())
	}
	usage := &overlay.Usage{}
	if v.Terms.Policy.Counts() {
		var err error
		if usage, err = overlay.Count(ctx, t, v.Project.ID, v.Instance.AppSlug, false); err != nil {
			return err
		}
	}
	err := v.membersPermitted(usage)
	if err == nil && (v.Kind == lifecycle.MembersAdd || len(v.Created) > 0) {
		err = v.affordable(ctx, t, "input."+v.capacityField())
	}
	return v.answer(lifecycle.VerdictPolicy, err)
}

// versionPermitted asks policy about the version that an upgrade leads to and the sources of its artifacts.
func (v *Verdicts) versionPermitted() error {
	if !v.moves() {
		return nil
	}
	rules := v.Terms.Policy
	app := v.Instance.AppSlug
	answers := []error{rules.App(app, "input.instanceId"), rules.Version(app, v.Target.Version, "input.version")}
	return policy.Join(append(answers, ofManifest(rules, v.Next, "input.version")...)...)
}

// ofManifest asks policy about what a version brings: the sources of its artifacts and the walls of its members.
func ofManifest(rules *policy.Effective, document *manifest.Manifest, path string) []error {
	return append(sources(rules, document, path), wallsPermitted(rules, document, path)...)
}

// wallsPermitted asks policy about the walls of a version's members: their profile, and any class that is strong enough
// for it.
func wallsPermitted(rules *policy.Effective, document *manifest.Manifest, path string) []error {
	want := document.Walls(nil)
	return []error{rules.Profile(want.Profile, path), rules.Classes(want.Classes(true), path)}
}

// sources asks policy about the sources of a version's artifacts.
func sources(rules *policy.Effective, document *manifest.Manifest, path string) (answers []error) {
	for _, artifact := range document.Artifacts {
		answers = append(answers, rules.Source(artifact.Ref, path))
	}
	return answers
}

// membersPermitted asks policy about the members that come and their allocations. Usage includes what was placed for
// the change.
func (v *Verdicts) membersPermitted(usage *overlay.Usage) error {
	rules := v.Terms.Policy
	var answers []error
	if v.Kind == lifecycle.MembersAdd {
		answers = append(answers, rules.App(v.Instance.AppSlug, "input.instanceId"),
			rules.MembersOfInstance(len(v.Members)+v.Count, "input.count"),
			rules.Members(usage.Members+v.Count, "input.count"))
	}
	answers = append(answers, wallsPermitted(rules, v.Manifest, v.SubjectPath())...)
	answers = append(answers, v.placesPermitted()...)
	if len(v.Created) > 0 {
		answers = append(answers, rules.GPUs(usage.GPUs, "input.intent"),
			rules.HourlyCost(usage.Spending, "input.intent"))
	}
	return policy.Join(answers...)
}

// placesPermitted asks policy about the regions and SKUs that members come to.
func (v *Verdicts) placesPermitted() (answers []error) {
	rules := v.Terms.Policy
	for i, allocation := range v.comeTo() {
		region, sku := v.allocationPath(i), v.allocationPath(i)
		if v.Intent != nil {
			region, sku = "input.intent.region", "input.intent.sku"
		}
		answers = append(answers, rules.Region(allocation.Region, region), rules.SKU(allocation.Sku, sku))
	}
	return answers
}

// comeTo returns the allocations that the members come to, each once, in the order in which they were named. Of several
// that were placed alike, the first represents all of its region and SKU. A launch uses all that it names and requests.
func (v *Verdicts) comeTo() (list []*db.Allocation) {
	if v.Launch != nil {
		return v.Afterwards()
	}
	for _, seat := range v.Seats {
		if !slices.ContainsFunc(list, func(a *db.Allocation) bool {
			alike := a.Region == seat.Allocation.Region && a.Sku == seat.Allocation.Sku
			return a.ID == seat.Allocation.ID || (v.Intent != nil && alike)
		}) {
			list = append(list, seat.Allocation)
		}
	}
	return list
}

// entitled checks the instance after the change against the project's entitlement to the app. Without one the instance
// neither grows nor moves to another version; a member may always be replaced by one that takes no more.
func (v *Verdicts) entitled() error {
	grows := v.Kind == lifecycle.MembersAdd
	if v.Terms == nil {
		return nil
	}
	if grows || v.moves() {
		if err := v.Terms.Entitled("input.instanceId"); err != nil {
			return err
		}
	}
	want := overlay.Wanted{VersionPath: "input.version", MembersPath: "input.count",
		GPUsPath: "input." + v.capacityField()}
	if v.moves() {
		want.Version = v.Target.Version
	}
	if grows {
		want.Members = len(v.Members) + v.Count
	}
	if more := gpusOf(v.Afterwards()); v.Rule.Places && more > v.gpusNow() {
		want.GPUs = more
	}
	return v.Terms.Entitlement.Within(want)
}

// gpusNow returns the GPUs of the allocations that the instance uses before the change.
func (v *Verdicts) gpusNow() int {
	var used []*db.Allocation
	for _, allocation := range v.Allocations {
		if allocation.InstanceID != nil && *allocation.InstanceID == v.Instance.ID {
			used = append(used, allocation)
		}
	}
	return gpusOf(used)
}

func gpusOf(allocations []*db.Allocation) (n int) {
	for _, allocation := range allocations {
		n += allocation.GpuCount
	}
	return n
}

// capacityField returns the input field that names allocations or places new ones.
func (v *Verdicts) capacityField() string {
	switch {
	case v.Intent != nil:
		return "intent"
	case v.Kind == lifecycle.MemberReplace:
		return "allocationId"
	}
	return "allocationIds"
}
