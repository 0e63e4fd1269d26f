package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog"
)

// share is a step to CANARY with this percent.
func (b *bench) share(id ids.ID, percent int) catalog.PromoteManifestInput {
	return catalog.PromoteManifestInput{ManifestID: id, To: lifecycle.StageCanary, Reason: "tested",
		CanaryPercent: &percent, Override: "a test"}
}

func TestACanaryHasAShareThatMovesAndEndsWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	next := b.Manifest(lifecycle.StageStaged, w.document("1.0.0"))
	for _, percent := range []int{0, 101, -1} {
		_, err := b.verbs.PromoteManifest(b.operator, b.share(next.ID, percent))
		platformtest.Refused(t, err, fault.InvalidArgument, "input.canaryPercent")
		_, err = b.verbs.SetCanaryPercent(b.operator, next.ID, percent, "why")
		platformtest.Refused(t, err, fault.InvalidArgument, "percent")
	}
	_, err := b.verbs.SetCanaryPercent(b.operator, next.ID, 20, "why")
	platformtest.Refused(t, err, fault.FailedPrecondition, "manifestId")
	_, err = b.verbs.SetCanaryPercent(b.operator, next.ID, 20, "")
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	_, err = b.verbs.SetCanaryPercent(b.operator, ids.New(ids.Manifest), 20, "why")
	platformtest.Refused(t, err, fault.NotFound)
	require.Zero(t, b.Count("promotion", ""))

	began, err := b.verbs.PromoteManifest(b.operator, b.share(next.ID, 20))
	require.NoError(t, err)
	require.Equal(t, 20, began.CanaryPercent)
	require.NotNil(t, began.CanaryStartedAt)
	moved, err := b.verbs.SetCanaryPercent(b.operator, next.ID, 45, "more")
	require.NoError(t, err)
	require.Equal(t, 45, moved.CanaryPercent)
	_, err = b.verbs.SetCanaryPercent(b.operator, next.ID, 45, "the same")
	require.NoError(t, err)
	history, err := b.trust.HistoryOf(b.operator, ids1(next))
	require.NoError(t, err)
	require.Len(t, history[next.ID], 2, "the same share again is no step")
	require.Equal(t, 45, *history[next.ID][0].CanaryPercent)
	require.Equal(t, lifecycle.StageCanary, history[next.ID][0].FromStage)
	require.Equal(t, 1, b.audited("setCanaryPercent", ""))

	back, err := b.promote(next, lifecycle.StageStaged)
	require.NoError(t, err)
	require.Zero(t, back.CanaryPercent)
	require.NotNil(t, back.CanaryStartedAt, "what the canary came to is still told")
}

func TestAHaltedCanaryGoesBackAndBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	old := b.Manifest(lifecycle.StageActive, w.document("0.9.0"))
	next := b.Manifest(lifecycle.StageStaged, w.document("1.0.0"))
	_, err := b.promote(next, lifecycle.StageCanary)
	require.NoError(t, err)
	b.SQL(`UPDATE manifest SET canary_halted_at = now(), canary_halt_reason = 'three times the failures' WHERE id = $1`,
		next.ID)
	_, err = b.promote(next, lifecycle.StageActive)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, "three times the failures")
	_, err = b.verbs.SetCanaryPercent(b.operator, next.ID, 90, "why")
	platformtest.Refused(t, err, fault.FailedPrecondition, "manifestId")
	lacking, err := b.verbs.Lacks(b.operator, ids1(next))
	require.NoError(t, err)
	require.Contains(t, lacking[next.ID][0].Message, "three times the failures")
	require.Equal(t, lifecycle.StageActive, b.stage(old))

	for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary} {
		_, err = b.promote(next, to)
		require.NoError(t, err)
	}
	require.Equal(t, 1, b.Count("manifest",
		"id = $1 AND canary_halted_at IS NULL AND canary_halt_reason = '' AND canary_percent = 10", next.ID))
	_, err = b.promote(next, lifecycle.StageActive)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("manifest", "id = $1 AND canary_percent = 0", next.ID))
}

func TestNoStepForwardWithAnArtifactInQuarantine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	for from, to := range map[lifecycle.Stage]lifecycle.Stage{
		lifecycle.StageDraft: lifecycle.StageStaged, lifecycle.StageStaged: lifecycle.StageCanary,
		lifecycle.StageCanary: lifecycle.StageActive,
	} {
		b.SQL(`UPDATE artifact SET quarantined_at = NULL, quarantine_reason = ''`)
		row := b.Manifest(from, w.document("1.0."+map[lifecycle.Stage]string{lifecycle.StageDraft: "0",
			lifecycle.StageStaged: "1", lifecycle.StageCanary: "2"}[from]))
		b.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'no trusted signature'`)
		_, err := b.promote(row, to)
		platformtest.Refused(t, err, fault.ArtifactQuarantined, "input.to")
		require.ErrorContains(t, err, "no trusted signature")
		require.Equal(t, from, b.stage(row))
		lacking, err := b.verbs.Lacks(b.operator, ids1(row))
		require.NoError(t, err)
		require.Equal(t, fault.ArtifactQuarantined, lacking[row.ID][0].Code)
		if from == lifecycle.StageCanary {
			_, err = b.promote(row, lifecycle.StageStaged)
			require.NoError(t, err, "a canary goes back whatever has become of its artifacts")
		}
	}
	require.Equal(t, 1, b.Count("promotion", ""))
}
