package parts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/engine"
)

// keyPrefix begins the idempotency keys of the platform's own tasks. It holds a space, which the
// keys of callers cannot, so that no adapter can put a task of its own in the place of a probe.
const keyPrefix = "platform "

// order is a node task that the platform itself requests. Its key names the operation and the round,
// so that a step that is run again requests the same tasks.
type order struct {
	member  *db.Member
	kind    lifecycle.NodeTaskKind
	key     string
	spec    any
	timeout int // seconds
}

// finding is the state of an ordered task.
type finding struct {
	ID       ids.ID
	MemberID ids.ID
	Key      string
	Kind     lifecycle.NodeTaskKind
	State    lifecycle.NodeTaskState
	Result   json.RawMessage
	Message  string
	EndedAt  *time.Time
	Node     string
	Online   bool
}

// place writes the tasks that are not there yet and wakes their nodes.
func place(ctx context.Context, t *tx.Tx, op *db.Operation, orders []order) error {
	batch := &pgx.Batch{}
	holdMembers(batch, orders)
	for _, one := range orders {
		if one.member.NodeID == nil {
			return fmt.Errorf("member %s is not bound to a node", one.member.ID)
		}
		spec, err := json.Marshal(one.spec)
		if err != nil {
			return fmt.Errorf("encode a task: %w", err)
		}
		digest := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", one.kind, one.timeout, spec))
		batch.Queue(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id,
			kind, spec,
			spec_digest, state, timeout_seconds, idempotency_key, created_at, correlation_id, traceparent, app_slug)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'PENDING', $11, $12, $13, $14, $15,
				coalesce((SELECT app_slug FROM instance WHERE id = $4), ''))
			ON CONFLICT (member_id, idempotency_key) DO NOTHING`,
			ids.New(ids.NodeTask), op.TenantID, op.ProjectID, one.member.InstanceID, one.member.ID,
			*one.member.NodeID, op.ID,
			one.kind, spec, digest[:], one.timeout, one.key, t.Now, op.CorrelationID, telemetry.Traceparent(ctx))
		t.Wake(event.NodeTopic(*one.member.NodeID))
	}
	if len(orders) == 0 {
		return nil
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("create node tasks: %w", err)
	}
	return nil
}

// holdMembers locks the members. It waits for a transaction that stores a task for one of them right now: that one has
// locked the member too, and what it stores has a lower number than what follows here.
func holdMembers(batch *pgx.Batch, orders []order) {
	members := make([]ids.ID, len(orders))
	for i, one := range orders {
		members[i] = one.member.ID
	}
	batch.Queue(`SELECT FROM member WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, members)
}

// findings reads the platform's tasks of the operation whose key begins so.
func findings(ctx context.Context, c *engine.Context, prefix string) ([]finding, error) {
	found, err := c.DB().Worker().Query(ctx, `SELECT t.id, t.member_id, t.idempotency_key, t.kind, t.state, t.result,
		t.message, t.ended_at,
		n.name, n.status = 'ONLINE' FROM node_task t JOIN compute_node n ON n.id = t.node_id
		WHERE t.operation_id = $1 AND starts_with(t.idempotency_key, $2) ORDER BY t.id`, c.Op.ID, prefix)
	if err != nil {
		return nil, fmt.Errorf("read node tasks: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[finding])
	if err != nil {
		return nil, fmt.Errorf("read node tasks: %w", err)
	}
	return list, nil
}

// open reports whether a task has not ended, and names the nodes of open tasks whose agents are silent.
func open(list []finding) (bool, string) {
	pending := false
	var silent []string
	for _, one := range list {
		if !one.State.Terminal() {
			pending = true
			if !one.Online {
				silent = append(silent, one.Node)
			}
		}
	}
	return pending, nameNodes(silent)
}

// others holds for the tasks on members that are not the platform's own for an operation; $1 are
// the members, $2 the operation and $3 the platform's prefix.
const others = `k.member_id = ANY ($1) AND (k.operation_id IS DISTINCT FROM $2
	OR NOT starts_with(k.idempotency_key, $3))`

// foreign are the tasks of others on an operation's members that have not ended.
type foreign struct {
	silent []string // the nodes among theirs that are not heard
	open   int      // on all nodes
	heard  int      // on nodes that are heard
}

// cancelOthers asks the agents to end the tasks of others on members.
func cancelOthers(ctx context.Context, t *tx.Tx, op *db.Operation, members []ids.ID) (out foreign, err error) {
	found, err := t.Query(ctx, `SELECT k.id, k.node_id, n.name, n.status = 'ONLINE', k.cancel_requested FROM node_task k
		JOIN compute_node n ON n.id = k.node_id WHERE `+others+` AND k.ended_at IS NULL
			ORDER BY k.id`, members, op.ID, keyPrefix)
	if err != nil {
		return out, fmt.Errorf("find open node tasks: %w", err)
	}
	type task struct {
		ID, NodeID       ids.ID
		Node             string
		Online, Canceled bool
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[task])
	if err != nil {
		return out, fmt.Errorf("find open node tasks: %w", err)
	}
	var wanted []ids.ID
	for _, one := range list {
		out.open++
		if one.Online {
			out.heard++
		} else {
			out.silent = append(out.silent, one.Node)
		}
		if !one.Canceled {
			wanted = append(wanted, one.ID)
			t.Wake(event.NodeTopic(one.NodeID), event.TaskTopic(one.ID))
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	if _, err := t.Exec(ctx, `UPDATE node_task SET cancel_requested = true WHERE id = ANY ($1) AND ended_at IS NULL`,
		wanted); err != nil {
		return out, fmt.Errorf("cancel node tasks: %w", err)
	}
	return out, nil
}

// asker is what answers a query: a transaction, or the pool.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// LaterThan reports whether a foreign task on one of the members was stored after the first proof's, or is
// open. The order is that in which the database wrote them: the ids of two servers are by two
// clocks.
func LaterThan(ctx context.Context, from asker, op *db.Operation, proofs []ResidueProof) (later bool, err error) {
	if len(proofs) == 0 {
		return false, nil
	}
	var members, tasks []ids.ID
	for _, proof := range proofs {
		members, tasks = append(members, proof.Member), append(tasks, proof.Task)
	}
	err = from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM node_task k WHERE `+others+
		` AND (coalesce(k.seq, 0) > (SELECT coalesce(min(p.seq), 0) FROM node_task p WHERE p.id = ANY ($4))
			OR k.ended_at IS NULL))`,
		members, op.ID, keyPrefix, tasks).Scan(&later)
	if err != nil {
		return false, fmt.Errorf("find later node tasks: %w", err)
	}
	return later, nil
}
