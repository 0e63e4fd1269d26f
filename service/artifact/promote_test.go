package artifact_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/artifact"
)

func TestAnArtifactEarnsItsStages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	promote := func(to lifecycle.Stage) error { return b.promote(b.operator, made.ID, to) }
	platformtest.Refused(t, b.promote(b.publisher, made.ID, lifecycle.StageStaged), fault.Forbidden)
	err := promote(lifecycle.StageActive)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, "DRAFT")
	_, err = b.verbs.PromoteArtifact(b.operator, artifact.PromoteArtifactInput{ArtifactID: made.ID,
		To: lifecycle.StageStaged})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	gone := http.HandlerFunc(http.NotFound)
	b.lie.Store(&gone)
	platformtest.Refused(t, promote(lifecycle.StageStaged), fault.ArtifactUnavailable, "input.artifactId")
	swapped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	b.lie.Store(&swapped)
	platformtest.Refused(t, promote(lifecycle.StageStaged), fault.DigestMismatch, "input.artifactId")
	require.Zero(t, b.Count("promotion", "")+b.Count("artifact", "stage <> 'DRAFT' OR quarantined_at IS NOT NULL"))
	b.lie.Store(nil)
	b.smoked(made)
	for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive} {
		require.NoError(t, promote(to))
	}

	app := b.App("apps")
	pinned := b.Manifest(lifecycle.StageActive, platformtest.Document(app, "1.0.0",
		b.Adapter("http://adapter.test", nil), made))
	err = promote(lifecycle.StageDeprecated)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(pinned.ID))
	instance := b.Instance(b.Project(b.Tenant()), pinned, lifecycle.InstanceRunning)
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED'`)
	require.NoError(t, promote(lifecycle.StageDeprecated))
	err = promote(lifecycle.StageRetired)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(instance.ID))
	b.SQL(`UPDATE instance SET released_at = now()`)
	require.NoError(t, promote(lifecycle.StageRetired))
	b.history(made.ID, 5)
	platformtest.Refused(t, b.promote(b.operator, ids.New(ids.Artifact), lifecycle.StageStaged), fault.NotFound)
}

// history asserts that each step was noted, in the audit and in the artifact's history.
func (b *bench) history(id ids.ID, want int) {
	b.t.Helper()
	steps := 0
	for _, entry := range b.Audit() {
		if entry.Action == "promoteArtifact" && entry.Allowed {
			steps++
			require.Equal(b.t, "tested", entry.Reason)
			require.NotEqual(b.t, string(entry.Before), string(entry.After))
		}
	}
	require.Equal(b.t, want, steps)
	require.Equal(b.t, want, b.Count("promotion",
		"object_id = $1 AND from_stage <> to_stage AND reason = 'tested' AND actor_id <> ''", id))
}

func TestOfTwoPromotionsOfAnArtifactOneWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	results := make(chan error, 2)
	for range 2 {
		go func() { results <- b.promote(b.operator, made.ID, lifecycle.StageStaged) }()
	}
	first, second := <-results, <-results
	require.True(t, (first == nil) != (second == nil), "%v, %v", first, second)
	require.Equal(t, 1, b.Count("promotion", ""))
}

func TestAPromotionThatWasOvertakenWhileTheRegistryWasAskedIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	var once sync.Once
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			b.SQL(`UPDATE artifact SET stage = 'STAGED'`)
			b.SQL(`UPDATE artifact SET stage = 'CANARY'`)
		})
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&hook)
	platformtest.Refused(t, b.promote(b.operator, made.ID, lifecycle.StageStaged), fault.Conflict, "input.artifactId")
	require.Equal(t, 1, b.Count("artifact", "stage = 'CANARY'"), "a first staging does not roll a canary back")
}

func TestAKeyMustCountAtEveryStepUpAndAtNoneDown(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	b := newBench(t, key.Public())
	ref, _ := b.push()
	b.sign(ref, key, false)
	made := b.published(ref, "k")
	b.smoked(made)
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageStaged))
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageCanary))
	b.SQL(`UPDATE signer_key SET revoked_at = now()`)
	platformtest.Refused(t, b.promote(b.operator, made.ID, lifecycle.StageActive), fault.SignatureUntrusted,
		"input.artifactId")
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageStaged))
	platformtest.Refused(t, b.promote(b.operator, made.ID, lifecycle.StageCanary), fault.SignatureUntrusted,
		"input.artifactId")
	b.SQL(`UPDATE signer_key SET revoked_at = NULL`)
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageCanary))
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageActive))
	_, err := b.verbs.Quarantine(b.operator, made.ID, "found to mine coins")
	require.NoError(t, err)
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageDeprecated), "out of use it may always go")
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageRetired))
}

func TestAStricterPolicyIsFeltAtTheNextStepUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, newKey(t).Public())
	b.policy(lifecycle.SignatureOptional)
	ref, _ := b.push()
	made := b.published(ref, "k")
	require.Equal(t, lifecycle.SignatureMissing, made.Signature)
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageStaged))
	b.policy(lifecycle.SignatureRequired)
	platformtest.Refused(t, b.promote(b.operator, made.ID, lifecycle.StageCanary), fault.SignatureMissing,
		"input.artifactId")
	require.Equal(t, 1, b.Count("artifact", "stage = 'STAGED'"))
}
