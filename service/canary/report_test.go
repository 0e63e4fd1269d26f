package canary_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
)

func TestAReportCountsTheLaunchesOfAllTenantsSinceTheCanaryBegan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launchAt(b.active, b.one, lifecycle.OperationFailed, b.began.Add(-time.Minute), time.Second) // before it began
	for i := range 10 {
		b.launch(b.canary, b.one, lifecycle.OperationSucceeded, time.Duration(i+1)*10*time.Second)
	}
	b.launch(b.canary, b.two, lifecycle.OperationFailed, time.Second)
	b.launch(b.canary, b.two, lifecycle.OperationRunning, 0)
	b.launch(b.canary, b.two, lifecycle.OperationCanceled, time.Second)
	smoke := b.launch(b.canary, b.two, lifecycle.OperationFailed, time.Second)
	b.SQL(`UPDATE instance SET smoke = true WHERE id = $1`, smoke.ID)
	other := b.launch(b.active, b.two, lifecycle.OperationSucceeded, 5*time.Second)
	b.Operation(other, lifecycle.MembersAdd, lifecycle.OperationSucceeded)
	b.Operation(other, lifecycle.MemberDrain, lifecycle.OperationFailed)
	b.Operation(other, lifecycle.MemberDrain, lifecycle.OperationCanceled)

	report := b.report()
	assert.Equal(t, 20, report.Percent)
	assert.True(t, b.began.Equal(*report.StartedAt))
	assert.Nil(t, report.HaltedAt)
	assert.Equal(t, lifecycle.CanaryTooEarly, report.Verdict)
	assert.InDelta(t, rollout.Threshold, report.Threshold, 0)
	assert.Equal(t, b.canary.ID, report.Canary.Manifest.ID)
	assert.Equal(t, []int{11, 1, 1, 0, 0}, []int{report.Canary.Launches, report.Canary.Failed, report.Canary.Pending,
		report.Canary.Operations, report.Canary.OperationsFailed})
	assert.InDelta(t, 1.0/11, *report.Canary.FailureRate, 1e-9)
	assert.InDelta(t, 55, *report.Canary.TimeToRunningP50, 0.01)
	assert.InDelta(t, 91, *report.Canary.TimeToRunningP90, 0.01)
	assert.Equal(t, b.active.ID, report.Active.Manifest.ID)
	assert.Equal(t, []int{1, 0, 0, 2, 1}, []int{report.Active.Launches, report.Active.Failed, report.Active.Pending,
		report.Active.Operations, report.Active.OperationsFailed})

	require.Len(t, report.Points, 12)
	for i := range report.Points[1:] {
		assert.False(t, report.Points[i+1].At.Before(report.Points[i].At), "oldest first")
	}
	last := report.Points[11]
	assert.Equal(t, []int{11, 1, 1, 0}, []int{last.CanaryLaunches, last.CanaryFailed, last.ActiveLaunches,
		last.ActiveFailed})
}

func TestAReportBeforeTheFirstLaunchAndWithoutAnActiveVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.active.ID)
	report := b.report()
	assert.Nil(t, report.Active)
	assert.Empty(t, report.Points)
	assert.Nil(t, report.Canary.FailureRate)
	assert.Nil(t, report.Canary.TimeToRunningP50)
	assert.Nil(t, report.Canary.TimeToRunningP90)
	assert.Equal(t, lifecycle.CanaryTooEarly, report.Verdict)
}

func TestAChartHasTheNewestPointsAndCountsThemAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := b.launch(b.active, b.one, lifecycle.OperationSucceeded, time.Second)
	// 1,199 more of the one launch there is, each with an instance, a generation and an operation of its own.
	for _, table := range []string{"instance", "operation", "instance_generation"} {
		condition := map[string]string{"instance": "id = $1", "operation": "instance_id = $1",
			"instance_generation": "instance_id = $1"}[table]
		changes := map[string]string{
			"instance":            `'{"id":"' || t.id || n || '","name":"n' || n || '"}'`,
			"operation":           `'{"id":"' || t.id || n || '","instance_id":"' || t.instance_id || n || '"}'`,
			"instance_generation": `'{"id":"' || t.id || n || '","instance_id":"' || t.instance_id || n || '","operation_id":"' || t.operation_id || n || '"}'`,
		}[table]
		b.SQL(`INSERT INTO `+table+` SELECT c.* FROM `+table+` t, generate_series(1, 1199) n,
			jsonb_populate_record(NULL::`+table+`, to_jsonb(t) || (`+changes+`)::jsonb) c WHERE t.`+condition, row.ID)
	}
	report := b.report()
	assert.Equal(t, 1200, report.Active.Launches)
	require.Len(t, report.Points, 500)
	assert.Equal(t, []int{701, 1200}, []int{report.Points[0].ActiveLaunches, report.Points[499].ActiveLaunches})
}

func TestACanaryThatEndedIsHeldAgainstTheVersionThatWasActiveThen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches("AACCAA")
	until := b.began.Add(b.clock + time.Second)
	b.step(b.active, lifecycle.StageActive, lifecycle.StageDeprecated, until)
	b.step(b.canary, lifecycle.StageCanary, lifecycle.StageActive, until)
	b.clock += time.Minute
	b.launches("ccccc") // after its canary
	next := b.version("1.2.0", lifecycle.StageCanary)
	b.step(b.canary, lifecycle.StageActive, lifecycle.StageDeprecated, until.Add(time.Hour))
	b.step(next, lifecycle.StageCanary, lifecycle.StageActive, until.Add(time.Hour))

	report := b.report()
	require.NotNil(t, report.Active)
	assert.Equal(t, b.active.ID, report.Active.Manifest.ID)
	assert.Equal(t, []int{2, 0, 4, 0}, []int{report.Canary.Launches, report.Canary.Failed, report.Active.Launches,
		report.Active.Failed})
}

func TestAReportIsForThePublisherAndThePlatform(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches("AC")
	_, account := b.ServiceAccount(b.publisher, authz.ManifestRead)
	report, err := b.service.Report(b.With(account), b.canary.ID)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, []int{report.Canary.Launches, report.Active.Launches}, "over all tenants")
	_, err = b.service.Report(b.viewer(b.publisher), b.canary.ID)
	require.NoError(t, err)

	_, err = b.service.Report(b.viewer(b.one), b.canary.ID)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, mute := b.ServiceAccount(b.publisher, authz.ArtifactRead)
	_, err = b.service.Report(b.With(mute), b.canary.ID)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = b.service.Report(b.staff(), ids.New(ids.Manifest))
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, err = b.service.Report(b.staff(), b.active.ID)
	require.True(t, fault.Is(err, fault.FailedPrecondition), "%v", err)
	assert.Equal(t, "manifestId", fault.From(err).Reasons[0].Path)
	_, err = b.service.Report(t.Context(), b.canary.ID)
	require.True(t, fault.Is(err, fault.Unauthenticated), "%v", err)

	b.SQL(`UPDATE app SET publisher_tenant_id = NULL, publisher_project_id = NULL WHERE id = $1`, b.app.ID)
	_, err = b.service.Report(b.viewer(b.publisher), b.canary.ID)
	require.True(t, fault.Is(err, fault.Forbidden), "the platform's own: %v", err)
	_, err = b.service.Report(b.staff(), b.canary.ID)
	require.NoError(t, err)
}

// The function that reads over all tenants answers nothing to a login that reaches no publisher, whatever a verb
// forgets.
func TestTheDatabaseItselfKeepsLaunchesFromStrangers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.launches(strings.Repeat("AC", 3))
	assert.Zero(t, b.seenBy(b.DB.API()))
	assert.Equal(t, 6, b.seenBy(b.DB.Worker()))
}
