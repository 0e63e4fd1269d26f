package catalog_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/evidence"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

// ids1 is the ids of these manifests.
func ids1(rows ...*db.Manifest) (out []ids.ID) {
	for _, row := range rows {
		out = append(out, row.ID)
	}
	return out
}

func TestWhatIsRequiredIsWhatTheSuiteHas(t *testing.T) {
	t.Parallel()
	var known []string
	for _, clause := range conformance.Clauses() {
		known = append(known, clause.ID)
	}
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		required := evidence.Required(kind)
		require.NotEmpty(t, required)
		require.True(t, slices.IsSorted(required))
		for _, id := range required {
			require.Contains(t, known, id)
		}
	}
}

func TestAReportIsKeptOnceUnderTheDigestOfItsBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	row := b.Manifest(lifecycle.StageDraft, w.document("1.0.0"))
	in := report(t, lifecycle.EvidenceTenancy, w)
	in.ManifestID = row.ID
	made, err := b.verbs.SubmitEvidence(b.publisher, in)
	require.NoError(t, err)
	require.True(t, made.Passed)
	require.JSONEq(t, `{"adapter":"`+w.adapter.Name+`","build":"b1","app":"`+w.app.Slug+`","suite":"`+
		conformance.Version+
		`","passed":6,"failed":0,"skipped":0,"notRun":0,"missing":[]}`, string(made.Summary))
	again, err := b.verbs.SubmitEvidence(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, 1, b.Count("promotion_evidence", "report = $1", []byte(in.Report)))
	require.Equal(t, 1, b.audited("submitEvidence", ""))

	bad := in
	bad.Digest = platformtest.Digest([]byte("other"))
	_, err = b.verbs.SubmitEvidence(b.publisher, bad)
	platformtest.Refused(t, err, fault.DigestMismatch, "input.digest")
	bad.Digest = "md5:1"
	_, err = b.verbs.SubmitEvidence(b.publisher, bad)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.digest")
	bad.Report, bad.Digest = "{}", platformtest.Digest([]byte("{}"))
	_, err = b.verbs.SubmitEvidence(b.publisher, bad)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.report")
	strange := w
	strange.adapter = b.Adapter("http://other.test", nil)
	other := report(t, lifecycle.EvidenceTenancy, strange)
	other.ManifestID = row.ID
	_, err = b.verbs.SubmitEvidence(b.publisher, other)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.report")
	require.ErrorContains(t, err, "is of adapter")
	in.ManifestID = ids.New(ids.Manifest)
	_, err = b.verbs.SubmitEvidence(b.publisher, in)
	platformtest.Refused(t, err, fault.NotFound)
	require.Equal(t, 1, b.Count("promotion_evidence", ""))
}

func TestAManifestHasAtMostFiftyReports(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	row := b.Manifest(lifecycle.StageDraft, w.document("1.0.0"))
	b.SQL(`INSERT INTO promotion_evidence (id, manifest_id, kind, digest, report, passed, submitted_by, created_at)
		SELECT 'evd_' || n, $1, 'TENANCY', 'd' || n, '', false, '', now() FROM generate_series(1, 50) n`, row.ID)
	in := report(t, lifecycle.EvidenceTenancy, w)
	in.ManifestID = row.ID
	_, err := b.verbs.SubmitEvidence(b.operator, in)
	platformtest.Refused(t, err, fault.LimitExceeded, "input.manifestId")
	require.Equal(t, 50, b.Count("promotion_evidence", ""))
}

func TestAControllerIsStagedByPassedReportsOfItsAdaptersBuildAndDeclaredBehaviour(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	bare := platformtest.Document(w.app, "1.0.0", w.adapter, w.artifact)
	undeclared, row := b.Manifest(lifecycle.StageDraft, bare), b.Manifest(lifecycle.StageDraft, w.document("1.0.1"))
	smoke := b.smoked(row)
	bring := func(of *db.Manifest, kind lifecycle.EvidenceKind, change ...func(*conformance.Report)) {
		in := report(t, kind, w, change...)
		in.ManifestID = of.ID
		_, err := b.verbs.SubmitEvidence(b.operator, in)
		require.NoError(t, err)
	}
	stage := func(says string, path ...string) {
		t.Helper()
		_, err := b.promote(row, lifecycle.StageStaged, smoke)
		platformtest.Refused(t, err, fault.EvidenceMissing, path...)
		require.ErrorContains(t, err, says)
		lacking, err := b.verbs.Lacks(b.operator, ids1(row))
		require.NoError(t, err)
		require.Len(t, lacking[row.ID], len(path), "what a step is refused for is told before")
		for i, reason := range lacking[row.ID] {
			require.Equal(t, path[i], reason.Path)
		}
	}
	stage("no conformance report", "reports.conformance", "reports.tenancy")
	bring(row, lifecycle.EvidenceConformance)
	bring(row, lifecycle.EvidenceTenancy, func(r *conformance.Report) { r.Digested.Adapter.Build = "b0" })
	stage("no tenancy report", "reports.tenancy")
	bring(row, lifecycle.EvidenceTenancy, func(r *conformance.Report) {
		r.Digested.Clauses[0].Outcome = conformance.Failed
	})
	stage("has not passed: 1 failed, required and not passed: tenancy.answers", "reports.tenancy")
	bring(row, lifecycle.EvidenceTenancy, func(r *conformance.Report) {
		r.Digested.Clauses[1].Outcome = conformance.Skipped
	})
	stage("tenancy.audience", "reports.tenancy")
	bring(row, lifecycle.EvidenceTenancy)
	lacking, err := b.verbs.Lacks(b.operator, ids1(row))
	require.NoError(t, err)
	require.Empty(t, lacking[row.ID])

	b.proved(undeclared, w)
	_, err = b.promote(undeclared, lifecycle.StageStaged, b.smoked(undeclared))
	platformtest.Refused(t, err, fault.EvidenceMissing, "document.lifecycle")

	b.SQL(`UPDATE adapter SET description = jsonb_set(description, '{build}', '"b2"')`)
	stage("build b2", "reports.conformance", "reports.tenancy")
	b.SQL(`UPDATE adapter SET description = jsonb_set(description, '{build}', '"b1"')`)
	_, err = b.promote(row, lifecycle.StageStaged, smoke)
	require.NoError(t, err)

	plain := w.document("1.0.2")
	plain["artifactKind"] = "oci"
	delete(plain, "lifecycle")
	other := b.Manifest(lifecycle.StageDraft, plain)
	_, err = b.promote(other, lifecycle.StageStaged, b.smoked(other))
	require.NoError(t, err, "what is no controller needs no report")
}

func TestReportsAndWhoPromotedAreForThePublisherAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	_, own := b.published(w, b.Tenant())
	stranger := b.account(b.Project(b.Tenant()))
	row := b.Manifest(lifecycle.StageStaged, w.document("1.0.0"))
	for _, kind := range []lifecycle.EvidenceKind{lifecycle.EvidenceConformance, lifecycle.EvidenceTenancy} {
		in := b.signed(report(t, kind, w))
		in.ManifestID = row.ID
		_, err := b.verbs.SubmitEvidence(b.operator, in)
		require.NoError(t, err)
	}
	step := b.share(row.ID, 5)
	step.Override = ""
	_, err := b.verbs.PromoteManifest(own, step)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		as   int
	}{{"publisher", 2}, {"stranger", 0}} {
		ctx := own
		if c.as == 0 {
			ctx = stranger
		}
		reports, err := b.trust.EvidenceOf(ctx, ids1(row))
		require.NoError(t, err)
		require.Len(t, reports[row.ID], c.as, c.name)
		history, err := b.trust.HistoryOf(ctx, ids1(row))
		require.NoError(t, err)
		require.Len(t, history[row.ID], 1)
		require.Equal(t, c.as > 0, history[row.ID][0].ActorName != "" && history[row.ID][0].ActorID != "" &&
			history[row.ID][0].Reason != "", c.name)
		lacking, err := b.verbs.Lacks(ctx, ids1(row))
		require.NoError(t, err)
		_, told := lacking[row.ID]
		require.Equal(t, c.as > 0, told, c.name)
	}
	_, err = b.trust.HistoryOf(b.As(b.User(b.Tenant())), ids1(row))
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestTheStepsOfATenantsArtifactAreToldWholeToTheTenant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	id := b.copied(b.Artifact(lifecycle.StageActive), tenant)
	b.SQL(`INSERT INTO promotion (id, object_id, tenant_id, from_stage, to_stage, reason, actor_kind, actor_id,
		actor_name, created_at)
		VALUES ('prm_1', $1, $2, 'DRAFT', 'STAGED', 'why', 'USER', 'usr_1', 'Ada', now())`, id, tenant.ID)
	history, err := b.trust.HistoryOf(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		[]ids.ID{id})
	require.NoError(t, err)
	require.Equal(t, "Ada", history[id][0].ActorName)
	other := b.Tenant()
	history, err = b.trust.HistoryOf(b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other))), []ids.ID{id})
	require.NoError(t, err)
	require.Empty(t, history[id])
}
