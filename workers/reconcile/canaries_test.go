package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/workers"
	"github.com/gpuaas/app-platform/workers/reconcile/stats"
)

// rolling is a lab in which version 1.1.0 is in a canary that one project is in and another is not.
type rolling struct {
	*lab
	canary  *db.Manifest
	in, out *db.User // who launches in the project that is in, and in the one that is not
	of      map[ids.ID]*db.Project
	stats   stats.Stats
	verbs   *instance.Service

	mu   sync.Mutex
	fail map[string]bool // names of instances that do not come up
}

func newRolling(t *testing.T) *rolling {
	t.Helper()
	r := &rolling{lab: newLab(t), fail: make(map[string]bool), of: make(map[ids.ID]*db.Project)}
	r.verbs = &instance.Service{DB: r.DB}
	document := platformtest.Document(r.app, "1.1.0", r.adapter, r.Artifact(lifecycle.StageActive))
	r.canary = r.Manifest(lifecycle.StageCanary, document)
	r.SQL(`UPDATE manifest SET canary_percent = 50, canary_started_at = now() WHERE id = $1`, r.canary.ID)
	for r.in == nil || r.out == nil {
		tenant := r.Tenant()
		project := r.Kit.Project(tenant)
		who := &r.out
		if rollout.Chosen(project.ID, r.canary.ID, 50) {
			who = &r.in
		}
		if *who == nil {
			*who = r.User(tenant, platformtest.In(authz.ProjectAdmin, project))
			r.of[(*who).ID] = project
			r.Entitle(project, r.app)
		}
	}
	r.on("PUT /v1/operations/{id}", func(_ *http.Request, body []byte) (int, any) {
		return http.StatusOK, r.carryOut(body)
	})
	r.background(func(ctx context.Context) error {
		return workers.Run(ctx, workers.Config{DB: r.DB, Hub: r.Hub, Keys: r.Ring, Dial: dial.Loopback(),
			PlatformURL: "http://127.0.0.1:1/graphql", Log: r.log, Pace: pace, Stats: &r.stats})
	})
	return r
}

// carryOut is an adapter whose launches come up, all but those that are to fail.
func (r *rolling) carryOut(body []byte) adapter.Status {
	var d adapter.Dispatch
	_ = json.Unmarshal(body, &d)
	says := adapter.Status{OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateSucceeded, Phase: "done",
		Percent: 100, Members: []adapter.MemberUpdate{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Kind == adapter.InstanceCreate && r.fail[d.Instance.Name] {
		says.State, says.Error = adapter.StateFailed, &adapter.OperationError{Code: "NO_BOOT",
			Message: "it does not boot", Owner: adapter.OwnerAdapter}
		return says
	}
	for _, member := range d.Members {
		says.Members = append(says.Members, adapter.MemberUpdate{ID: member.ID, Status: adapter.MemberActive,
			Health: adapter.Healthy})
	}
	return says
}

// launchBy launches without naming a version.
func (r *rolling) launchBy(who *db.User, name string, fails bool) *instance.Started {
	r.Helper()
	r.mu.Lock()
	r.fail[name] = fails
	r.mu.Unlock()
	project := r.of[who.ID]
	started, err := r.verbs.Launch(r.As(who), instance.LaunchInput{ProjectID: project.ID, AppSlug: r.app.Slug,
		Name: name, AllocationIDs: []ids.ID{r.Allocation(project, r.node).ID},
		Components:      []instance.Component{{Key: "worker", Count: 1}},
		DeadlineSeconds: 600, Reason: "a test", IdempotencyKey: name})
	require.NoError(r.TB, err)
	return started
}

// round launches as the word says, and waits until all have ended as they should: C and c by the project that is in,
// A and a by the one that is not, c and a to fail.
func (r *rolling) round(number int, word string) {
	r.Helper()
	var all []*instance.Started
	for i, one := range word {
		who, version := r.out, "1.0.0"
		if one == 'C' || one == 'c' {
			who, version = r.in, "1.1.0"
		}
		started := r.launchBy(who, fmt.Sprintf("r%d-%d", number, i), one == 'c' || one == 'a')
		require.Equal(r.TB, version, started.Instance.AppVersion)
		all = append(all, started)
	}
	for i, started := range all {
		r.until("a launch has ended", func() bool { return r.op(started.Operation.ID).EndedAt != nil })
		want := lifecycle.OperationSucceeded
		if word[i] == 'c' || word[i] == 'a' {
			want = lifecycle.OperationFailed
		}
		ended := r.op(started.Operation.ID)
		require.Equal(r.TB, want, ended.State, ended.ErrorMessage)
	}
}

func (r *rolling) halted() bool {
	return r.Ent.Manifest.GetX(r.Context(), r.canary.ID).CanaryHaltedAt != nil
}

// A canary whose launches all fail is halted by the sixth, by the end of that launch and not by the slow look; its
// project launches the active version from then on, and what came up with it stays.
func TestABadCanaryIsHaltedByItsOwnLaunches(t *testing.T) {
	t.Parallel()
	r := newRolling(t)
	for number := range 6 {
		require.False(t, r.halted(), "round %d", number)
		r.round(number, "AAc")
	}
	r.until("it is halted", r.halted)
	r.until("it is counted", func() bool { return r.stats.CanariesHalted.Load() == 1 })
	require.Equal(t, 1, r.Count("promotion", "object_id = $1 AND actor_name = 'platform'", r.canary.ID))
	require.Equal(t, 1, r.Count("audit_entry", "object_id = $1 AND action = 'haltCanary' AND allowed", r.canary.ID))
	require.Equal(t, "1.0.0", r.launchBy(r.in, "after", false).Instance.AppVersion)
}

// Versions that fail alike are not halted: in sixteen of each half the launches fail.
func TestACanaryThatFailsNoMoreOftenIsNotHalted(t *testing.T) {
	t.Parallel()
	r := newRolling(t)
	for number := range 8 {
		r.round(number, "aCAc")
	}
	service := canary.Service{DB: r.DB}
	halted, err := service.Halt(t.Context(), r.canary.ID)
	require.NoError(t, err)
	require.Nil(t, halted)
	require.False(t, r.halted())
	report, err := service.Report(r.As(r.Operator()), r.canary.ID)
	require.NoError(t, err)
	require.Equal(t, []int{16, 8, 16, 8}, []int{report.Canary.Launches, report.Canary.Failed, report.Active.Launches,
		report.Active.Failed})
	require.NotNil(t, report.Canary.TimeToRunningP90)
}
