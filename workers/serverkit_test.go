package workers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// patientApp carries every kind out with the product's server kit: it reports each member's status, and while held it
// waits as an adapter waits for running work.
type patientApp struct {
	held atomic.Bool
	// front wraps the kit's handler; nil for nothing.
	front func(http.Handler) http.Handler
}

// moves are what a kind's targets come to, and what a replacement does.
var moves = map[adapter.Kind]adapter.MemberStatus{
	adapter.InstanceCreate: adapter.MemberActive, adapter.MembersAdd: adapter.MemberActive,
	adapter.MemberRecover: adapter.MemberActive,
	adapter.MemberDrain:   adapter.MemberDrained, adapter.MemberRemove: adapter.MemberRemoved,
	adapter.MemberReplace:        adapter.MemberRemoved,
	adapter.InstanceDecommission: adapter.MemberRemoved,
}

func (a *patientApp) run(ctx context.Context, run *adapter.Run) error {
	d := run.Dispatch()
	members := run.Targets()
	if len(members) == 0 {
		members = d.Members
	}
	for a.held.Load() && !run.Force() {
		run.WaitsFor([]adapter.Work{{Kind: "job", ID: "7", Name: "training", Owner: "ada", Since: time.Now()}})
		select {
		case <-ctx.Done():
			if d.Kind == adapter.MemberRemove { // back in service, and it says so
				_ = run.Member(d.Targets[0], adapter.MemberActive, adapter.Healthy, nil)
			}
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
	var change struct{ ReplacementID string }
	if d.Kind == adapter.MemberReplace {
		if err := run.Change(&change); err != nil {
			return err
		}
		if err := run.Member(change.ReplacementID, adapter.MemberActive, adapter.Healthy, nil); err != nil {
			return err
		}
	}
	for _, member := range members {
		if to := moves[d.Kind]; to != "" {
			if err := run.Member(member.ID, to, adapter.Healthy, nil); err != nil {
				return err
			}
		}
	}
	return run.Evidence("members", len(members))
}

// serverKit serves the app and answers its address.
func (l *lab) serverKit(name string, app *patientApp) string {
	l.Helper()
	operations := make(map[adapter.Kind]adapter.OperationFunc)
	for _, kind := range lifecycle.Kinds() {
		if kind.Wire != "" {
			operations[adapter.Kind(kind.Wire)] = app.run
		}
	}
	kit, err := adapter.New(adapter.Config{
		Name: name, Build: "test", StateDir: l.TempDir(), Issuer: l.platform.URL,
		Keys: adapter.NewKeySet(l.platform.URL+"/.well-known/jwks.json", http.DefaultClient),
		Apps: []adapter.App{{Slug: "demo", Components: []adapter.Component{{Key: "peer", DisplayName: "Peer",
			Min: 1, Max: 8, Default: 2}},
			ConfigSchema: json.RawMessage(`{"type":"object"}`), Operations: operations}},
	})
	require.NoError(l.TB, err)
	require.NoError(l.TB, kit.Start(context.Background()))
	handler := kit.Handler()
	if app.front != nil {
		handler = app.front(handler)
	}
	server := httptest.NewServer(handler)
	l.Cleanup(func() {
		kit.Stop()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// kitCluster is a cluster whose adapter is built with the server kit.
func (l *lab) kitCluster(name string) (*cluster, *patientApp) {
	l.Helper()
	app := &patientApp{}
	return l.clusterOf(name, app), app
}

// clusterOf is a cluster of an app.
func (l *lab) clusterOf(name string, app *patientApp) *cluster {
	l.Helper()
	c := &cluster{lab: l}
	c.launched = l.launch(l.world(name, l.serverKit(name, app)), time.Minute)
	op := l.ended(c.create)
	require.Equal(l.TB, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	c.furnish(name)
	return c
}

func eachWithTheKit(t *testing.T, which func(rule) bool, run func(t *testing.T, c *cluster, app *patientApp, r rule)) {
	t.Helper()
	for _, r := range rules {
		if !which(r) {
			continue
		}
		t.Run(string(r.kind), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.pace.Grace = time.Minute // nothing here is to be cut short
			l.work()
			c, app := l.kitCluster("kit")
			run(t, c, app, r)
		})
	}
}

func TestEveryKindEndsWellWithTheServerKit(t *testing.T) {
	t.Parallel()
	eachWithTheKit(t, func(rule) bool { return true }, func(t *testing.T, c *cluster, _ *patientApp, r rule) {
		c.work()
		stop := c.rob(c.ask(asked{kind: r.kind}))
		op := c.end()
		stop()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
	})
}

func TestEveryKindIsCanceledAtTheServerKitWhileItWaits(t *testing.T) {
	t.Parallel()
	eachWithTheKit(t, cancelable, func(t *testing.T, c *cluster, app *patientApp, r rule) {
		app.held.Store(true)
		c.ask(asked{kind: r.kind})
		c.until("it says what it waits for", func() bool { return c.waits() == "training" })
		c.cancel()
		op := c.end()
		after := r.canceled
		if r.kind == lifecycle.MemberRemove {
			after = "CANCELED CANCELED" + asBefore // as the adapter says with its last word
		}
		require.Equal(t, after, c.world(), op.ErrorMessage)
		require.Equal(t, "the operation was stopped", op.CancelMessage)
	})
}

// waits is the name of the work that the operation's stored status says it waits for.
func (c *cluster) waits() string {
	var status adapter.Status
	err := c.pool().QueryRow(c.Context(), `SELECT coalesce(adapter_status, '{}') FROM operation WHERE id = $1`,
		c.op).Scan(&status)
	require.NoError(c.TB, err)
	if len(status.WaitsFor) == 0 {
		return ""
	}
	return status.WaitsFor[0].Name
}

func TestForceAtTheDeadlineEndsAWaitAtTheServerKit(t *testing.T) {
	t.Parallel()
	forcible := func(r rule) bool { return r.kind.Effects().Forcible }
	eachWithTheKit(t, forcible, func(t *testing.T, c *cluster, app *patientApp, r rule) {
		app.held.Store(true)
		c.overdue(c.ask(asked{kind: r.kind, onDeadline: lifecycle.DeadlineForce}))
		op := c.end()
		require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
		require.Equal(t, lifecycle.OutcomeForced, *op.Outcome)
		require.Equal(t, 2, op.DispatchAttempt)
		for _, step := range c.steps(c.op) {
			require.Equal(t, lifecycle.StepSucceeded, step.State, "%s: the adapter did it in time", step.Name)
		}
	})
}

func TestForceFromTheStartDoesNotWaitAtTheServerKit(t *testing.T) {
	t.Parallel()
	forcible := func(r rule) bool { return r.kind.Effects().Forcible }
	eachWithTheKit(t, forcible, func(t *testing.T, c *cluster, app *patientApp, r rule) {
		app.held.Store(true)
		c.ask(asked{kind: r.kind, force: true})
		op := c.end()
		require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
		require.Equal(t, lifecycle.OutcomeForced, *op.Outcome)
		require.Equal(t, 1, op.DispatchAttempt)
	})
}
