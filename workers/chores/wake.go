package chores

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gpuaas/app-platform/service/ledger/event"
)

// inserted is what River's own trigger calls a new job.
const inserted = "river_insert"

// Driver is River's driver for pgx, but wakes in another way: it sends no notification, and listens to the hub.
type Driver struct {
	*riverpgxv5.Driver
	hub    *event.Hub
	queues []string
}

// SupportsListenNotify says that nothing is notified by PostgreSQL.
func (*Driver) SupportsListenNotify() bool { return false }

// SupportsListener says that there is something to listen to.
func (*Driver) SupportsListener() bool { return true }

// GetListener is the hub as River sees it.
func (d *Driver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return &listener{hub: d.hub, schema: params.Schema, queues: d.queues, told: len(d.queues)}
}

// listener reports a wake-up to River as if a job had been inserted in each queue. One goroutine uses it.
type listener struct {
	hub    *event.Hub
	schema string
	queues []string
	waiter *event.Waiter
	told   int // queues that were told of the present wake-up
}

// Connect begins to listen.
func (l *listener) Connect(context.Context) error {
	l.waiter = l.hub.Wait(Topic)
	return nil
}

// Close ends it.
func (l *listener) Close(context.Context) error {
	if l.waiter != nil {
		l.waiter.Close()
		l.waiter = nil
	}
	return nil
}

// WaitForNotification waits for the next wake-up.
func (l *listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	if l.told >= len(l.queues) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.waiter.C:
			l.told = 0
		}
	}
	l.told++
	return &riverdriver.Notification{Topic: inserted, Payload: fmt.Sprintf(`{"queue":%q}`, l.queues[l.told-1])}, nil
}

// Listen, Unlisten, Ping and SetAfterConnectExec have nothing to do: the hub keeps its own connection.
func (l *listener) Listen(context.Context, string) error { return nil }

// Unlisten implements riverdriver.Listener.
func (l *listener) Unlisten(context.Context, string) error { return nil }

// Ping implements riverdriver.Listener.
func (l *listener) Ping(context.Context) error { return nil }

// SetAfterConnectExec implements riverdriver.Listener.
func (l *listener) SetAfterConnectExec(string) {}

// Schema implements riverdriver.Listener.
func (l *listener) Schema() string { return l.schema }
