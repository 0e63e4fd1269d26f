package event_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// The bounds of every wait for a state.
const (
	patience = 60 * time.Second
	tick     = 10 * time.Millisecond
)

var everyFamily = []string{"apps", "scheduler"}

// bundle is a project with two instances and somebody who may change them.
type bundle struct {
	*platformtest.Kit
	t             *testing.T
	project       *db.Project
	first, second *db.Instance
	ctx           context.Context
	feeds         *event.Feeds
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Kit: platformtest.New(t), t: t}
	tenant := b.Tenant()
	b.project = b.Project(tenant)
	_, stored := b.Launchable(b.project, "apps")
	node, _ := b.Node(2)
	other, _ := b.Node(2)
	b.first = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, node))
	b.second = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, other))
	b.ctx = b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	feeds, err := event.NewFeeds(t.Context(), b.DB.Worker())
	require.NoError(t, err)
	b.feeds = feeds
	return b
}

// append writes an event with a message in a transaction of its own; before the commit, during is called.
func (b *bundle) append(of *db.Instance, message string, during func()) error {
	return b.DB.Write(b.ctx, func(ctx context.Context, t *tx.Tx) error {
		row := *of // each transaction has its own copy
		if err := event.Append(ctx, t, &row, event.Draft{Type: lifecycle.EventInstanceHealthy,
			Message: message}); err != nil {
			return err
		}
		during()
		return nil
	})
}

func nothing() {}

// feed reads the project's feed after a place to its present end, page by page.
func (b *bundle) feed(after event.Position) (messages []string, end event.Position) {
	b.t.Helper()
	for {
		page, err := b.feeds.Project(b.t.Context(), b.project.ID, everyFamily, after, 3)
		require.NoError(b.t, err)
		for _, e := range page {
			require.True(b.t, after.Before(event.PositionOf(e)))
			after = event.PositionOf(e)
			messages = append(messages, e.Message)
		}
		if len(page) < 3 {
			return messages, after
		}
	}
}

// hub runs a hub over a pool and waits until it listens; it ends with the test.
func (b *bundle) hub(pool *pgxpool.Pool) *event.Hub {
	b.t.Helper()
	hub := event.NewHub(pool, slog.New(slog.DiscardHandler))
	connected := hub.Wait("anything") // a new connection wakes all
	defer connected.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		require.NoError(b.t, <-ended)
	})
	woken(b.t, connected, "by the hub's own connection")
	woken(b.t, connected, "and once more, for what was not sent since others thought themselves alone")
	return hub
}

// woken waits for one wake-up.
func woken(t *testing.T, w *event.Waiter, what string) {
	t.Helper()
	select {
	case <-w.C:
	case <-time.After(patience):
		require.FailNow(t, "not woken", what)
	}
}

func asleep(w *event.Waiter) bool {
	select {
	case <-w.C:
		return false
	default:
		return true
	}
}
