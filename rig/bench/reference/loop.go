package reference

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
)

const (
	concurrency = 16 // operations carried at once, as in the platform
	pollEvery   = 5 * time.Second
)

// loop is a queue worker as one would write it by hand: it claims due rows with SKIP LOCKED, sends them to the adapter,
// learns from the adapter's feed that they ended, and ends them. Every state that the platform makes durable it makes
// durable too, in as many transactions.
type loop struct {
	pool   *pgxpool.Pool
	client *adapterclient.Client
	ring   *token.Keyring
	worker ids.ID
	target adapterclient.Target
	wake   chan struct{}
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	slots  chan struct{}

	mu sync.Mutex
	at map[ids.ID]int64
}

// startLoop connects as the workers do and begins.
func startLoop(ctx context.Context, config Config, ring *token.Keyring) (*loop, error) {
	pool, err := connect(ctx, config.DSN, "app_worker", config.Connections)
	if err != nil {
		return nil, err
	}
	l := &loop{pool: pool, ring: ring, client: adapterclient.New(ring, dial.Loopback()), worker: ids.New(ids.Worker),
		wake: make(chan struct{}, 1), slots: make(chan struct{}, concurrency), at: make(map[ids.ID]int64)}
	if err := pool.QueryRow(ctx, `SELECT name, url FROM adapter
		LIMIT 1`).Scan(&l.target.Name, &l.target.URL); err != nil {
		return nil, fmt.Errorf("find the adapter: %w", err)
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.tasks.Go(func() { l.run(ctx) })
	l.tasks.Go(func() { l.listen(ctx) })
	return l, nil
}

// stop ends the loop; it does nothing when l is nil.
func (l *loop) stop() {
	if l == nil {
		return
	}
	l.cancel()
	l.tasks.Wait()
	l.client.Close()
	l.pool.Close()
}

// accepted notes that an operation's transaction has committed, and wakes the loop.
func (l *loop) accepted(id ids.ID) {
	now := time.Now().UnixNano()
	l.mu.Lock()
	l.at[id] = now
	l.mu.Unlock()
	l.poke()
}

func (l *loop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take answers when operations were accepted, and forgets it.
func (l *loop) take() map[ids.ID]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.at
	l.at = make(map[ids.ID]int64)
	return taken
}

// claimSQL takes due operations in a statement that commits by itself.
const claimSQL = `UPDATE operation SET claimed_by = $1, claim_epoch = claim_epoch + 1, started_at
	= coalesce(started_at, now()),
	state = 'RUNNING', next_run_at = now() + interval '1 day'
	WHERE id = ANY (ARRAY(SELECT id FROM operation WHERE ended_at IS NULL AND claimed_by IS NULL AND next_run_at <= now()
		ORDER BY next_run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED))
	RETURNING id, instance_id, tenant_id, project_id, correlation_id, dispatch_attempt, deadline`

func (l *loop) run(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		found, err := l.claim(ctx)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "reference: claim:", err)
		}
		for _, one := range found {
			l.slots <- struct{}{}
			l.tasks.Go(func() {
				defer func() { <-l.slots; l.poke() }()
				if err := l.carry(ctx, one); err != nil && ctx.Err() == nil {
					l.fail(ctx, one, err)
				}
			})
		}
		if len(found) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-tick.C:
		}
	}
}

func (l *loop) claim(ctx context.Context) ([]*work, error) {
	room := cap(l.slots) - len(l.slots)
	if room == 0 {
		return nil, nil
	}
	rows, err := l.pool.Query(ctx, claimSQL, l.worker, room)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*work, error) {
		w := &work{}
		return w, row.Scan(&w.operation, &w.instance, &w.tenant, &w.project, &w.correlation, &w.attempt, &w.deadline)
	})
}

// listen polls the adapter's feed, stores each end and makes its operation due.
func (l *loop) listen(ctx context.Context) {
	cursor := ""
	for ctx.Err() == nil {
		page, err := l.client.Changes(ctx, l.target, cursor, 20*time.Second)
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "reference: feed:", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		if err := l.absorb(ctx, page.Operations); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "reference: absorb:", err)
		}
		cursor = page.Cursor
		l.poke()
	}
}

// fail ends an operation that could not be carried on; a bench has no use for another try.
func (l *loop) fail(ctx context.Context, w *work, cause error) {
	_, err := l.pool.Exec(ctx, `UPDATE operation SET state = 'FAILED', error_code = 'INTERNAL', error_message = $2,
		claimed_by = NULL, ended_at = now()
		WHERE id = $1`, w.operation, cause.Error())
	fmt.Fprintln(os.Stderr, "reference: carry:", cause, err)
}
