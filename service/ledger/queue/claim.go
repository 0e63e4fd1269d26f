package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Bounds of the search for due operations: how many of the longest waiting are ranked against each other; and when
// those fill the window, how many projects with open operations are read beside them, and how many of each one's.
const (
	claimWindow   = "64"
	claimProjects = "1024"
	claimEach     = "2"
)

// parked is how far ahead next_run_at of a claimed operation is set. A wake of the operation while it is held brings it
// forward, so that its holder notices when it lets go.
const parked = "1 day"

// ErrFenced says that the operation was ended or taken over; its holder drops it.
var ErrFenced = errors.New("the claim has ended")

// unclaimed is true of operations that wait in the queue.
const unclaimed = `ended_at IS NULL AND claimed_by IS NULL`

// knows is true of operations that the worker's build can carry out: $1 are the kinds that it begins, $2 the plans that
// it carries on.
func knows(kinds, plans string) string {
	return `(cardinality(` + kinds + `::text[]) = 0 OR CASE WHEN step_plan = '' THEN kind = ANY (` + kinds +
		`::text[]) ELSE step_plan = ANY (` + plans + `::text[]) END)`
}

// beyond is greater than every id: from there the next step along the index is to another tenant or adapter.
const beyond = `'zzzz'`

// steppedSQL steps along the index from project to project with open operations, for each adapter. It passes over each
// tenant of full and each adapter of crowded in one step: it costs the projects that it finds, and nothing of any
// backlog. It begins when the condition is true.
func steppedSQL(condition, full, crowded string) string {
	return `project AS (
	(SELECT adapter_name, tenant_id, project_id, 1 AS place FROM operation WHERE ` + condition + ` AND ` + unclaimed + `
	ORDER BY adapter_name, tenant_id, project_id LIMIT 1)
	UNION ALL
	SELECT next.adapter_name, next.tenant_id, next.project_id, p.place + 1 FROM project p, LATERAL (
		SELECT adapter_name, tenant_id, project_id FROM operation
		WHERE ` + unclaimed + ` AND (adapter_name, tenant_id, project_id) > (p.adapter_name,
			CASE WHEN p.adapter_name = ANY (` + crowded + `::text[]) THEN ` + beyond + ` ELSE p.tenant_id END,
			CASE WHEN p.adapter_name = ANY (` +
		crowded + `::text[]) OR p.tenant_id = ANY (` + full + `::text[]) THEN ` + beyond + ` ELSE p.project_id END)
		ORDER BY adapter_name, tenant_id, project_id LIMIT 1) next
	WHERE p.place < ` + claimProjects + `
)`
}

// claimSQL takes due operations that the worker knows. They take turns by tenant, and within a tenant by project, so
// that a backlog delays only its owner. Behind a backlog that fills the window, and whenever a tenant or an adapter has
// its most, it steps along the index from project to project, which costs the number of projects and not of operations.
// An operation that no worker has begun gets the worker's plan ($7), and is carried on by that plan alone.
var claimSQL = `WITH RECURSIVE due AS MATERIALIZED (
	SELECT id, tenant_id, project_id, next_run_at FROM operation
	WHERE cardinality($3::text[]) + cardinality($8::text[]) = 0
	AND ` + unclaimed + ` AND next_run_at <= now() AND ` + knows("$5", "$6") + `
	ORDER BY next_run_at, id LIMIT ` + claimWindow + `
), ` +
	steppedSQL(
		`(cardinality($3::text[]) + cardinality($8::text[]) > 0 OR NOT $4::bool AND (SELECT count(*) FROM due) = `+
			claimWindow+`)`, "$3", "$8") + `, others AS MATERIALIZED (
	SELECT o.* FROM project p, LATERAL (
		SELECT id, tenant_id, project_id, next_run_at FROM operation
		WHERE adapter_name = p.adapter_name AND tenant_id = p.tenant_id AND project_id = p.project_id AND ` +
	unclaimed + ` AND next_run_at <= now() AND ` + knows("$5", "$6") + `
		ORDER BY next_run_at, id LIMIT CASE WHEN cardinality($3::text[]) + cardinality($8::text[]) > 0 THEN $2
		ELSE ` + claimEach + ` END) o
	WHERE p.tenant_id <> ALL ($3::text[]) AND p.adapter_name <> ALL ($8::text[]) AND p.project_id NOT IN (SELECT project_id FROM due)
), by_project AS (
	SELECT *, row_number() OVER (PARTITION BY project_id ORDER BY next_run_at, id) AS turn
	FROM (SELECT * FROM due UNION ALL SELECT * FROM others) found
), by_tenant AS (
	SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY turn, next_run_at, id) AS round FROM by_project
), first AS (
	SELECT id, round, next_run_at FROM by_tenant ORDER BY round, next_run_at, id LIMIT $2 * 4 -- others claim too
), picked AS (
	SELECT o.id FROM first r JOIN operation o ON o.id = r.id
	WHERE coalesce(o.ended_at, 'infinity') = 'infinity' AND coalesce(o.claimed_by, '') = '' AND o.next_run_at <= now() -- by its id, see notEnded
	ORDER BY r.round, r.next_run_at, r.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED
)
UPDATE operation SET claimed_by = $1, claim_epoch = claim_epoch + 1,
	step_plan = CASE WHEN step_plan = '' AND claim_epoch = 0 THEN coalesce($7::jsonb ->> kind, '') ELSE step_plan END, started_at = coalesce(started_at, now()),
	state = CASE WHEN state = 'PENDING' THEN 'RUNNING' ELSE state END, next_run_at = now() + interval '` + parked + `'
FROM picked WHERE operation.id = picked.id RETURNING ` + claimedColumns

// nextDueSQL is how long until the next operation is due that the worker knows; none while nothing waits.
var nextDueSQL = `SELECT extract(epoch FROM next_run_at - now())::float8 FROM operation
	WHERE ` + unclaimed + ` AND ` + knows("$1", "$2") + ` ORDER BY next_run_at LIMIT 1`

// nextBesideSQL is nextDueSQL without tenants ($3) and adapters ($4) that have their most: it skips their backlogs.
var nextBesideSQL = `WITH RECURSIVE ` + steppedSQL("true", "$3", "$4") + `
	SELECT extract(epoch FROM min(o.next_run_at) - now())::float8 FROM project p, LATERAL (
		SELECT next_run_at FROM operation WHERE adapter_name = p.adapter_name AND tenant_id = p.tenant_id AND project_id = p.project_id
			AND ` + unclaimed + ` AND ` + knows("$1", "$2") + `
		ORDER BY next_run_at LIMIT 1) o
	WHERE p.tenant_id <> ALL ($3::text[]) AND p.adapter_name <> ALL ($4::text[]) HAVING count(*) > 0`

// claimSettings are for the claim alone. The claim does not wait for the disk: if a crash of the database loses it, the
// next worker to claim has another name, or finds that it carries the operation already. Planning the statement at each
// run costs more than carrying it out. And it must be planned for stepping along the queue's indexes, whatever the
// statistics of a queue, which are always old, suggest: a sort, an incremental one too, or a hash would read all that
// waits. app.claims_known states that the claim takes only what its build knows; the database refuses other claims.
const claimSettings = `SELECT set_config('synchronous_commit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
	set_config('enable_incremental_sort', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('enable_memoize', 'off', true),
	set_config('app.claims_known', '1', true)`

// Want says what a worker wants to claim.
type Want struct {
	// Limit is the most it takes.
	Limit int
	// Full are tenants that are passed over, Crowded adapters.
	Full, Crowded []string
	// Narrow leaves out the search behind a backlog, for workers that searched there a moment ago.
	Narrow bool
	// Begin are the step plans, by kind, that the worker begins operations with. Other kinds are left to other builds.
	// Empty, for measurements, takes all kinds and names no plan.
	Begin map[lifecycle.OperationKind]string
	// Carry are the step plans of begun operations that it carries on, those of Begin among them.
	Carry []string
}

// known returns the kinds and plans of a Want as the statements need them.
func (w Want) known() (kinds, plans []string, begin []byte, err error) {
	kinds, plans = []string{}, slices.Clone(w.Carry)
	for kind, plan := range w.Begin {
		kinds, plans = append(kinds, string(kind)), append(plans, plan)
	}
	begin, err = json.Marshal(w.Begin)
	return kinds, plans, begin, err
}

// Claim takes due operations for the worker, in one statement that commits by itself: nothing else is locked with it.
// It also returns how long until the next operation is due, negative when one is due now, and a day when nothing waits.
func Claim(ctx context.Context, pool *pgxpool.Pool, worker ids.ID, want Want) (held []*Held, next time.Duration,
	err error) {
	next = 24 * time.Hour
	full, crowded := append([]string{}, want.Full...), append([]string{}, want.Crowded...)
	kinds, plans, begin, err := want.known()
	if err != nil {
		return nil, 0, fmt.Errorf("encode step plans: %w", err)
	}
	batch := &pgx.Batch{}
	batch.Queue(claimSettings)
	batch.Queue(claimSQL, worker, want.Limit, full, want.Narrow, kinds, plans,
		string(begin), crowded).Query(func(found pgx.Rows) (err error) {
		held, err = pgx.CollectRows(found, scanClaimed)
		return err
	})
	sql, args := nextDueSQL, []any{kinds, plans}
	if len(full)+len(crowded) > 0 {
		sql, args = nextBesideSQL, append(args, full, crowded)
	}
	batch.Queue(sql, args...).Query(func(found pgx.Rows) error {
		seconds, err := pgx.CollectRows(found, pgx.RowTo[float64])
		if len(seconds) > 0 {
			next = time.Duration(seconds[0] * float64(time.Second))
		}
		return err
	})
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, 0, fmt.Errorf("claim operations: %w", err)
	}
	for _, one := range held {
		one.Worker = worker
	}
	return held, next, nil
}

// notEnded is true of operations that have not ended, for statements that name the operations. It is written so that
// PostgreSQL cannot use an index of open operations for it. A prepared statement keeps its plan: a plan from a time
// with few open operations may find each operation by such an index, and later read through all that are open.
const notEnded = `coalesce(ended_at, 'infinity') = 'infinity'`

// fenceSQL is true of an operation that is still held.
const fenceSQL = `id = $1 AND claim_epoch = $2 AND coalesce(claimed_by, '') = $3 AND ` + notEnded

// Locking is what Lock reads.
type Locking struct {
	held     *Held
	instance *db.Instance
	fresh    []*Held
}

// QueueLock queues what locks everything that the operation changes, in the same order everywhere: its instance, then
// the operation itself.
func (h *Held) QueueLock(batch *pgx.Batch) *Locking { return h.queueLock(batch, "") }

// QueueLockNow is QueueLock for a transaction that waits for no lock. Done returns nil for an instance that another
// transaction has locked, and ErrFenced for such an operation.
func (h *Held) QueueLockNow(batch *pgx.Batch) *Locking { return h.queueLock(batch, " SKIP LOCKED") }

func (h *Held) queueLock(batch *pgx.Batch, how string) *Locking {
	l := &Locking{held: h}
	if h.InstanceID != nil {
		batch.Queue(`SELECT `+rows.InstanceColumns+` FROM instance WHERE id = $1 FOR UPDATE`+how,
			*h.InstanceID).Query(func(found pgx.Rows) error {
			list, err := pgx.CollectRows(found, rows.Instance)
			if err == nil && len(list) == 0 && how == "" {
				err = pgx.ErrNoRows
			}
			if len(list) > 0 {
				l.instance = list[0]
			}
			return err
		})
	}
	batch.Queue(`SELECT `+heldColumns+` FROM operation
		WHERE `+fenceSQL+` FOR UPDATE`+how, h.ID, h.ClaimEpoch, h.Worker).
		Query(func(found pgx.Rows) (err error) {
			l.fresh, err = pgx.CollectRows(found, scanHeld)
			return err
		})
	return l
}

// OfAdapter is true of the operations $1 that are the adapter $2's and have not ended.
const OfAdapter = `id = ANY ($1::text[]) AND adapter_name = $2 AND ` + notEnded

// Open queues what locks those of an adapter's operations that have not ended, in the order of
// their ids. Their instances, if anything is to be written to them, are locked before.
func Open(batch *pgx.Batch, wanted []string, adapter string, each func(*db.Operation)) {
	batch.Queue(`SELECT `+heldColumns+` FROM operation WHERE `+OfAdapter+` ORDER BY id FOR UPDATE`,
		wanted, adapter).Query(func(found pgx.Rows) error {
		list, err := pgx.CollectRows(found, scanHeld)
		for _, one := range list {
			each(one.Operation)
		}
		return err
	})
}

// Refresh reads the operation again, without locking it. ErrFenced when the claim has ended.
func (h *Held) Refresh(ctx context.Context, pool *pgxpool.Pool) error {
	found, err := pool.Query(ctx, `SELECT `+heldColumns+` FROM operation WHERE `+fenceSQL, h.ID, h.ClaimEpoch, h.Worker)
	if err != nil {
		return fmt.Errorf("read %s again: %w", h.ID, err)
	}
	fresh, err := pgx.CollectRows(found, scanHeld)
	if err != nil {
		return fmt.Errorf("read %s again: %w", h.ID, err)
	}
	if len(fresh) == 0 {
		return ErrFenced
	}
	h.took(fresh[0])
	return nil
}

// Done refreshes the operation and returns the locked instance; nil for an operation without one. ErrFenced when the
// claim has ended.
func (l *Locking) Done() (*db.Instance, error) {
	if len(l.fresh) == 0 {
		return nil, ErrFenced
	}
	l.held.took(l.fresh[0])
	return l.instance, nil
}

// ReleaseSQL releases a held operation until a moment; $4 is that moment, $5 the failures in a row, and $6 the state
// that the holder knows the adapter to have reported (Reported). It returns whether the operation was woken in the
// meantime: also by an end that was reported and that the holder does not know.
const ReleaseSQL = `UPDATE operation SET claimed_by = NULL, failures = $5, next_run_at = LEAST(next_run_at,
	CASE WHEN adapter_status ->> 'state' IN ('succeeded', 'failed', 'canceled') AND adapter_status ->> 'state' <> $6 THEN now() ELSE $4 END)
	WHERE ` + fenceSQL + ` RETURNING next_run_at <= now()`

// RefusalSQL notes that the end of a held operation, as the state $4, was refused for the reason $5, and returns how
// often in a row that state was refused.
const RefusalSQL = `UPDATE operation SET end_refusal = jsonb_build_object('state', $4::text, 'why', $5::text,
	'times', CASE end_refusal ->> 'state' WHEN $4 THEN (end_refusal ->> 'times')::int ELSE 0 END + 1,
	'since', CASE end_refusal ->> 'state' WHEN $4 THEN end_refusal ->> 'since' ELSE to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END)
	WHERE ` + fenceSQL + ` RETURNING (end_refusal ->> 'times')::int`

// HandOver releases everything that a worker holds, at once: the worker is stopping.
func HandOver(ctx context.Context, pool *pgxpool.Pool, worker ids.ID) error {
	_, err := pool.Exec(ctx, `UPDATE operation SET claimed_by = NULL, next_run_at = now() WHERE id IN (
		SELECT id FROM operation WHERE claimed_by = $1 ORDER BY id FOR UPDATE)`, worker) // in the order that holds everywhere
	if err != nil {
		return fmt.Errorf("release the claims of this worker: %w", err)
	}
	return nil
}

// ReleaseLost releases what is claimed in a worker's name but not carried on by it.
func ReleaseLost(ctx context.Context, pool *pgxpool.Pool, worker ids.ID, carried []string) error {
	_, err := pool.Exec(ctx, `UPDATE operation SET claimed_by = NULL, next_run_at = now() WHERE id IN (
		SELECT id FROM operation WHERE claimed_by = $1 AND NOT id = ANY ($2::text[]) ORDER BY id FOR
		UPDATE SKIP LOCKED)`, worker, carried)
	if err != nil {
		return fmt.Errorf("release lost claims: %w", err)
	}
	return nil
}

// ReleaseDead releases operations whose worker has had no heartbeat for that long, and returns how many there were.
func ReleaseDead(ctx context.Context, pool *pgxpool.Pool, silence time.Duration) (int, error) {
	tag, err := pool.Exec(ctx, `UPDATE operation SET claimed_by = NULL, next_run_at = now() WHERE id IN (
		SELECT id FROM operation o WHERE claimed_by IS NOT NULL AND NOT EXISTS (
			SELECT FROM worker_process w WHERE w.id = o.claimed_by AND w.heartbeat_at > now() - $1::interval)
		LIMIT 1000 FOR UPDATE SKIP LOCKED)`, silence)
	if err != nil {
		return 0, fmt.Errorf("release the operations of dead workers: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// Wake makes operations due now, after the transaction. It locks their rows.
func Wake(ctx context.Context, t *tx.Tx, operations ...ids.ID) error {
	if len(operations) == 0 {
		return nil
	}
	_, err := t.Exec(ctx, `UPDATE operation SET next_run_at = now() WHERE id = ANY ($1) AND `+notEnded+
		` AND next_run_at > now()`, operations)
	if err != nil {
		return fmt.Errorf("wake operations: %w", err)
	}
	t.Wake(event.QueueTopic)
	return nil
}
