package task_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/task"
)

// pinned is the artifact that the instance's manifest pins.
func (b *bench) pinned() *db.Artifact {
	b.t.Helper()
	var id ids.ID
	require.NoError(b.t, b.Admin.QueryRow(b.t.Context(),
		`SELECT artifact_id FROM manifest_artifact WHERE manifest_id = $1`, b.instance.ManifestID).
		Scan((*string)(&id)))
	row, err := b.Ent.Artifact.Get(b.t.Context(), id)
	require.NoError(b.t, err)
	return row
}

// fetching is a task that fetches a digest.
func (b *bench) fetching(key, digest string) task.RunInput {
	in := b.input(key)
	in.Kind, in.Spec = lifecycle.TaskFetchArtifact,
		json.RawMessage(fmt.Sprintf(`{"digest":%q,"path":"/srv/model"}`, digest))
	return in
}

func TestATaskFetchesWhatItsInstanceMayHaveAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const at = "input.spec.digest"
	pinned := b.pinned()
	first, err := b.Run(b.adapter, b.fetching("pinned", pinned.Digest))
	require.NoError(t, err)

	other := b.Artifact(lifecycle.StageActive)
	_, err = b.Run(b.adapter, b.fetching("other", other.Digest))
	platformtest.Refused(t, err, fault.NotFound, at)

	own := b.Artifact(lifecycle.StageActive)
	b.SQL(`UPDATE artifact SET tenant_id = $2 WHERE id = $1`, own.ID, b.tenant.ID)
	_, err = b.Run(b.adapter, b.fetching("own", own.Digest))
	require.NoError(t, err)
	b.SQL(`UPDATE artifact SET stage = 'DEPRECATED' WHERE id = $1`, own.ID)
	_, err = b.Run(b.adapter, b.fetching("own-deprecated", own.Digest))
	require.NoError(t, err)
	b.SQL(`UPDATE artifact SET stage = 'RETIRED' WHERE id = $1`, own.ID)
	_, err = b.Run(b.adapter, b.fetching("own-retired", own.Digest))
	platformtest.Refused(t, err, fault.NotFound, at)
	draft := b.Artifact(lifecycle.StageDraft)
	b.SQL(`UPDATE artifact SET tenant_id = $2 WHERE id = $1`, draft.ID, b.tenant.ID)
	_, err = b.Run(b.adapter, b.fetching("own-draft", draft.Digest))
	platformtest.Refused(t, err, fault.NotFound, at)

	foreign := b.Artifact(lifecycle.StageActive)
	b.SQL(`UPDATE artifact SET tenant_id = $2 WHERE id = $1`, foreign.ID, b.Tenant().ID)
	_, err = b.Run(b.adapter, b.fetching("foreign", foreign.Digest))
	platformtest.Refused(t, err, fault.NotFound, at)

	b.SQL(`UPDATE artifact SET quarantined_at = now(), quarantine_reason = 'it bites' WHERE id = $1`, pinned.ID)
	_, err = b.Run(b.adapter, b.fetching("bad", pinned.Digest))
	platformtest.Refused(t, err, fault.ArtifactQuarantined, at)
	require.ErrorContains(t, err, "it bites")
	again, err := b.Run(b.adapter, b.fetching("pinned", pinned.Digest))
	require.NoError(t, err, "the same task asked for again is the same task")
	require.Equal(t, first.ID, again.ID)
	b.SQL(`UPDATE artifact SET quarantined_at = NULL WHERE id = $1`, pinned.ID)

	b.Policy(b.project, `{"artifactSources": {"deny": ["registry.test"]}}`)
	_, err = b.Run(b.adapter, b.fetching("denied", pinned.Digest))
	platformtest.Refused(t, err, fault.PolicyDenied, at)
	require.Equal(t, 3, b.Count("node_task", "true"))
	require.Equal(t, 3, b.Count("audit_entry", "action = 'runNodeTask' AND allowed"))
}

func TestAnUpgradeFetchesWhatItLeadsTo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, next := b.Launchable(b.project, "apps")
	var digest string
	require.NoError(t, b.Admin.QueryRow(t.Context(),
		`SELECT a.digest FROM artifact a JOIN manifest_artifact p ON p.artifact_id = a.id WHERE p.manifest_id = $1`,
		next.ID).Scan(&digest))
	_, err := b.Run(b.adapter, b.fetching("before", digest))
	platformtest.Refused(t, err, fault.NotFound, "input.spec.digest")
	b.SQL(`UPDATE operation SET desired_change = jsonb_build_object('platform', jsonb_build_object('to',
		jsonb_build_object('manifestId', $2::text))) WHERE id = $1`,
		b.operation.ID, next.ID)
	_, err = b.Run(b.adapter, b.fetching("during", digest))
	require.NoError(t, err)
}

// told returns the payloads of the events of a type on the instance's timeline.
func (b *bench) told(kind lifecycle.EventType) (payloads []map[string]any) {
	b.t.Helper()
	rows, err := b.Ent.Event.Query().All(b.t.Context())
	require.NoError(b.t, err)
	for _, row := range rows {
		if row.Type == string(kind) {
			require.Equal(b.t, b.operation.ID, *row.OperationID)
			require.Equal(b.t, b.member.ID, *row.MemberID)
			var payload map[string]any
			require.NoError(b.t, json.Unmarshal(row.Payload, &payload))
			payloads = append(payloads, payload)
		}
	}
	return payloads
}

// progress reports as the agent that a task runs and is so far.
func (b *bench) progress(id ids.ID, done, total float64) (*db.NodeTask, error) {
	return b.Report(b.agent, task.ReportInput{TaskID: id, Fence: 1, State: lifecycle.TaskRunning, ProgressDone: &done,
		ProgressTotal: &total})
}

// later moves the events back in time, as if they had happened a while ago.
func (b *bench) later() {
	b.SQL(`UPDATE app_instance_event SET occurred_at = occurred_at - interval '3 seconds'`)
}

func TestProgressIsKeptNeverFallsBackAndIsToldInTenths(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pinned := b.pinned()
	made, err := b.Run(b.adapter, b.fetching("k", pinned.Digest))
	require.NoError(t, err)
	_, err = b.report(made.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	require.Empty(t, b.told(lifecycle.EventArtifactFetching), "nothing is known of it yet")

	waiter := b.Hub.Wait(event.InstanceTopic(b.instance.ID))
	defer waiter.Close()
	row, err := b.progress(made.ID, 0, 1_000)
	require.NoError(t, err)
	require.Equal(t, int64(1_000), row.ProgressTotal)
	select {
	case <-waiter.C:
	default:
		t.Fatal("nobody was woken")
	}
	require.Equal(t, []map[string]any{{"taskId": string(made.ID), "memberId": string(b.member.ID),
		"digest": pinned.Digest, "name": pinned.Name,
		"done": 0., "total": 1_000.}}, b.told(lifecycle.EventArtifactFetching))

	_, err = b.progress(made.ID, 150, 1_000)
	require.NoError(t, err)
	require.Len(t, b.told(lifecycle.EventArtifactFetching), 1, "the timeline was told a moment ago")
	b.later()
	_, err = b.progress(made.ID, 199, 1_000)
	require.NoError(t, err)
	require.Len(t, b.told(lifecycle.EventArtifactFetching), 1, "no tenth more")
	_, err = b.progress(made.ID, 200, 1_000)
	require.NoError(t, err)
	require.Len(t, b.told(lifecycle.EventArtifactFetching), 2)
	row, err = b.progress(made.ID, 100, 1_000)
	require.NoError(t, err)
	require.Equal(t, int64(200), row.ProgressDone, "a report that comes late changes nothing")

	_, err = b.Report(b.agent, task.ReportInput{TaskID: made.ID, Fence: 1, State: lifecycle.TaskSucceeded,
		Result: json.RawMessage(`{"bytes":1000,"cached":false}`)})
	require.NoError(t, err)
	_, err = b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"taskId": string(made.ID), "memberId": string(b.member.ID),
		"digest": pinned.Digest, "name": pinned.Name,
		"done": 1_000., "total": 1_000., "bytes": 1_000., "cached": false}},
		b.told(lifecycle.EventArtifactFetched), "once")
	require.Equal(t, 1, b.Count("operation", "next_run_at <= now()"), "its operation is due")
	seq, revision := b.Count("app_instance_event", "true"), 0
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT revision FROM instance WHERE id = $1`,
		b.instance.ID).Scan(&revision))
	require.Equal(t, seq, revision, "no number is left out")
	_, err = b.progress(made.ID, 900, 1_000)
	platformtest.Refused(t, err, fault.Conflict, "")
}

func TestOtherTasksHaveProgressAndNoTimeline(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	row, err := b.progress(made.ID, 5, 10)
	require.NoError(t, err)
	require.Equal(t, int64(5), row.ProgressDone)
	require.Equal(t, lifecycle.TaskRunning, row.State)
	require.Zero(t, b.Count("app_instance_event", "true"))
}

func TestProgressThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	for _, wrong := range []float64{-1, 0.5, math.NaN(), math.Inf(1), 1 << 53} {
		_, err := b.progress(made.ID, wrong, 0)
		platformtest.Refused(t, err, fault.InvalidArgument, "input.progressDone")
		_, err = b.progress(made.ID, 0, wrong)
		platformtest.Refused(t, err, fault.InvalidArgument, "input.progressTotal")
	}
	_, err := b.progress(made.ID, 11, 10)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.progressDone")
	one := 1.
	_, err = b.Report(b.agent, task.ReportInput{TaskID: made.ID, Fence: 1, State: lifecycle.TaskSucceeded,
		ProgressDone: &one})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.progressDone")
	require.Equal(t, lifecycle.TaskPending, b.stored(made.ID).State)
}
