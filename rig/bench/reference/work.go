package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// stepNames are the steps of a launch.
var stepNames = []string{"prepare", "dispatch", "await", "verify", "finish"}

// callerKeys are what the adapter's token may do, as many as the platform's.
var callerKeys = []string{"task.run", "task.read", "operation.read", "operation.report", "artifact.read",
	"apps.instance.read"}

// work is a claimed operation.
type work struct {
	operation, instance                ids.ID
	tenant, project, correlation, name string
	attempt                            int
	deadline                           time.Time
	node                               adapter.Node
	member                             ids.ID
	config                             json.RawMessage
}

// event queues one event of the timeline.
func (w *work) event(batch *pgx.Batch, seq int, kind, message, payload string) {
	batch.Queue(`INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
		permission_family, operation_id, message,
		payload, correlation_id, occurred_at) VALUES ($1, $2, $3, $4, $5, $6, 'bench', 'apps', $7, $8, $9, $10, now())`,
		ids.New(ids.Event), w.tenant, w.project, w.instance, seq, kind, w.operation, message, json.RawMessage(payload),
		w.correlation)
}

// carry does what is next: a new operation is prepared and sent, one whose adapter has ended it is
// ended.
func (l *loop) carry(ctx context.Context, w *work) error {
	if w.attempt > 0 {
		return l.finish(ctx, w)
	}
	if err := l.prepare(ctx, w); err != nil {
		return err
	}
	if err := l.dispatch(ctx, w); err != nil {
		return err
	}
	return l.park(ctx, w)
}

// prepare makes the beginning durable before the operation is sent to the adapter.
func (l *loop) prepare(ctx context.Context, w *work) error {
	return pgx.BeginFunc(ctx, l.pool, func(t pgx.Tx) error {
		if err := l.lock(ctx, t, w); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for i, name := range stepNames {
			state := "PENDING"
			if i == 0 {
				state = "RUNNING"
			}
			batch.Queue(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state,
				attempt,
				started_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, 1,
				now())`, ids.New(ids.OperationStep), w.tenant, w.project, w.operation, name, i, state)
		}
		batch.Queue(`UPDATE operation SET phase = 'prepare', message = 'checking allocations and nodes',
			dispatch_attempt = 1
			WHERE id = $1`, w.operation)
		batch.Queue(`UPDATE instance SET status = 'STARTING', revision = revision + 2, updated_at = now()
			WHERE id = $1`,
			w.instance)
		batch.Queue(`UPDATE member SET status = 'JOINING', updated_at = now(), last_operation_id = $2
			WHERE instance_id = $1
			AND status = 'PENDING'`,
			w.instance, w.operation)
		w.event(batch, 3, "apps.operation.started", "a worker began", `{"kind":"INSTANCE_CREATE"}`)
		w.event(batch, 4, "apps.instance.starting", "starting", `{}`)
		return t.SendBatch(ctx, batch).Close()
	})
}

// lock locks instance and operation, and reads what the dispatch speaks of.
func (l *loop) lock(ctx context.Context, t pgx.Tx, w *work) error {
	batch := &pgx.Batch{}
	batch.Queue(`SELECT name, config FROM instance WHERE id = $1 FOR UPDATE`, w.instance).
		QueryRow(func(row pgx.Row) error { return row.Scan(&w.name, &w.config) })
	batch.Queue(`SELECT 1 FROM operation WHERE id = $1 AND claimed_by = $2 AND ended_at IS NULL
		FOR UPDATE`, w.operation,
		l.worker).
		QueryRow(func(row pgx.Row) error { var one int; return row.Scan(&one) })
	batch.Queue(`SELECT m.id, n.id, n.name, n.address, n.sealing_key, a.id, n.gpus, n.cpus, n.memory_mib FROM member m
		JOIN compute_node n ON n.id = m.node_id JOIN allocation a ON a.id = m.allocation_id
		WHERE m.instance_id = $1`, w.instance).
		QueryRow(func(row pgx.Row) error {
			return row.Scan(&w.member, &w.node.ID, &w.node.Name, &w.node.Address, &w.node.SealingKey,
				&w.node.AllocationID, &w.node.GPUs, &w.node.CPUs, &w.node.MemoryMiB)
		})
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("lock %s: %w", w.operation, err)
	}
	return nil
}

func (l *loop) dispatch(ctx context.Context, w *work) error {
	expires := time.Now().Add(15 * time.Minute).Truncate(time.Second)
	access, err := l.ring.Sign(token.Claims{Operation: w.operation, Instance: w.instance, Keys: callerKeys,
		ExpiresAt: expires}, time.Now())
	if err != nil {
		return err
	}
	w.node.Shape = "baremetal"
	_, _, err = l.client.Dispatch(ctx, l.target, adapter.Dispatch{
		OperationID: string(w.operation), Kind: adapter.InstanceCreate, Attempt: 1, Deadline: w.deadline,
		CorrelationID: w.correlation,
		Instance: adapter.Instance{ID: string(w.instance), Name: w.name, TenantID: w.tenant, ProjectID: w.project,
			App: "bench", Version: "1.0.0",
			Config: w.config, Components: []adapter.ComponentCount{{Key: "worker", Count: 1}}},
		Members:  []adapter.Member{{ID: string(w.member), ComponentKey: "worker", Status: "joining", Node: w.node}},
		Platform: adapter.Platform{GraphQLURL: l.ring.Issuer() + "/graphql", Token: access, TokenExpiresAt: expires},
	})
	return err
}

// park notes the dispatch and lets go until the adapter says more.
func (l *loop) park(ctx context.Context, w *work) error {
	return pgx.BeginFunc(ctx, l.pool, func(t pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`SELECT 1 FROM operation WHERE id = $1 AND claimed_by = $2 AND ended_at IS NULL
			FOR UPDATE`, w.operation,
			l.worker)
		w.step(batch, 0, "SUCCEEDED")
		w.step(batch, 1, "RUNNING")
		w.step(batch, 1, "SUCCEEDED")
		w.step(batch, 2, "RUNNING")
		batch.Queue(`UPDATE operation SET phase = 'await', message = 'the adapter works on it', percent = 10, claimed_by
			= NULL,
			next_run_at = LEAST(next_run_at, now() + interval '5 seconds') WHERE id = $1`, w.operation)
		return t.SendBatch(ctx, batch).Close()
	})
}

func (w *work) step(batch *pgx.Batch, ordinal int, state string) {
	batch.Queue(`UPDATE operation_step SET state = $3::text, ended_at = CASE
		WHEN $3::text = 'SUCCEEDED' THEN now() END, evidence = '{"attempt": 1}'
		WHERE operation_id = $1 AND ordinal = $2`, w.operation, ordinal, state)
}

// absorb stores what the feed reported, a page in one transaction, and makes ended operations due.
func (l *loop) absorb(ctx context.Context, page []adapter.Status) error {
	batch := &pgx.Batch{}
	for _, status := range page {
		if !status.State.Terminal() {
			continue
		}
		encoded, err := json.Marshal(status)
		if err != nil {
			return err
		}
		batch.Queue(`UPDATE operation SET adapter_status = $2, next_run_at = now(), percent = 80 WHERE id = $1
			AND ended_at IS NULL`,
			status.OperationID, encoded)
	}
	return l.pool.SendBatch(ctx, batch).Close()
}

// finish ends the operation and starts the instance. One that is due before the adapter has spoken
// waits on.
func (l *loop) finish(ctx context.Context, w *work) error {
	return pgx.BeginFunc(ctx, l.pool, func(t pgx.Tx) error {
		if err := l.lock(ctx, t, w); err != nil {
			return err
		}
		var status []byte
		if err := t.QueryRow(ctx, `SELECT adapter_status FROM operation WHERE id = $1`,
			w.operation).Scan(&status); err != nil {
			return err
		}
		if status == nil {
			_, err := t.Exec(ctx,
				`UPDATE operation SET claimed_by = NULL, next_run_at = LEAST(next_run_at, now() + interval '5 seconds')
					WHERE id = $1`, w.operation)
			return err
		}
		batch := &pgx.Batch{}
		for i := 2; i < len(stepNames); i++ {
			if i > 2 {
				w.step(batch, i, "RUNNING")
			}
			w.step(batch, i, "SUCCEEDED")
		}
		batch.Queue(`UPDATE operation SET state = 'SUCCEEDED', outcome = 'NORMAL', evidence = '{"rounds": 0}', message
			= 'running', phase = 'done', percent = 100,
			claimed_by = NULL, ended_at = now() WHERE id = $1`, w.operation)
		batch.Queue(`UPDATE member SET status = 'ACTIVE', updated_at = now() WHERE instance_id = $1
			AND status = 'JOINING'`,
			w.instance)
		batch.Queue(`UPDATE instance SET status = 'RUNNING', revision = revision + 3, updated_at = now(),
			roles = '[{"componentKey":"worker","displayName":"Workers","desired":1,"current":1,"healthy":0,"summary":"1 of 1 active"}]' WHERE id = $1`, w.instance)
		w.event(batch, 5, "apps.instance.start_completed", "running", `{}`)
		w.event(batch, 6, "apps.instance.running", "running", `{}`)
		w.event(batch, 7, "apps.operation.succeeded", "running", `{}`)
		return t.SendBatch(ctx, batch).Close()
	})
}
