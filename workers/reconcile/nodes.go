package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/health"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// Bounds of looking at nodes.
const (
	silence        = "15 seconds" // a node not heard for that long is OFFLINE
	maxAway        = 5_000        // silent nodes that are known
	maxMoved       = 100          // nodes whose members one look tells; the others come with the next
	maxNodeMembers = 500          // instances of one node that are told
)

// named is a node by its name for people.
type named struct {
	ID   ids.ID
	Name string
}

// nodes marks those whose agents fell silent, and has their members' health follow, both ways; it is the
// agent's heartbeat that brings a node back. A process that begins to reconcile reports all that are
// silent once more, which changes nothing where it was reported before.
func (r *Reconciler) nodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	silent, err := r.nodesOf(ctx, `UPDATE compute_node SET status = 'OFFLINE'
		WHERE status = 'ONLINE' AND coalesce(last_seen_at, created_at) < now()
		- interval '`+silence+`' RETURNING id, name`)
	if err != nil {
		return fmt.Errorf("find silent nodes: %w", err)
	}
	for _, one := range silent {
		r.Log.Warn("a node's agent does not report any more", "node_id", one.ID, "name", one.Name)
		r.DB.Wake(event.NodeTopic(one.ID))
	}
	away, err := r.nodesOf(ctx, `SELECT id, name FROM compute_node WHERE status = 'OFFLINE' ORDER BY id
		LIMIT $1`, maxAway)
	if err != nil {
		return fmt.Errorf("list silent nodes: %w", err)
	}
	known := slices.Collect(maps.Keys(r.away))
	back, err := r.nodesOf(ctx, `SELECT id, name FROM compute_node WHERE status = 'ONLINE' AND id = ANY ($1)
		ORDER BY id`,
		known)
	if err != nil {
		return fmt.Errorf("list nodes that are back: %w", err)
	}
	return r.follow(ctx, away, back)
}

func (r *Reconciler) nodesOf(ctx context.Context, sql string, args ...any) ([]named, error) {
	found, err := r.DB.Worker().Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[named])
}

// follow reports the nodes that fell silent or came back since the last poll, at most maxMoved of each. A
// node that was retired while it was silent is not reported any more.
func (r *Reconciler) follow(ctx context.Context, away, back []named) error {
	moved := 0
	for _, node := range away {
		if _, known := r.away[node.ID]; known || moved == maxMoved {
			continue
		}
		moved++
		if err := r.tell(ctx, node, false); err != nil {
			return err
		}
		r.away[node.ID] = node.Name
	}
	for _, node := range back[:min(len(back), maxMoved)] {
		if err := r.tell(ctx, node, true); err != nil {
			return err
		}
		delete(r.away, node.ID)
	}
	maps.DeleteFunc(r.away, func(id ids.ID, _ string) bool {
		same := func(node named) bool { return node.ID == id }
		return !slices.ContainsFunc(away, same) && !slices.ContainsFunc(back, same)
	})
	return nil
}

// tell has the health of a node's members follow, and wakes the operations on their instances: they may
// wait for the node, or now have to report that they do.
func (r *Reconciler) tell(ctx context.Context, node named, back bool) error {
	found, err := r.DB.Worker().Query(ctx, `SELECT DISTINCT m.instance_id FROM member m
		JOIN allocation a ON a.id = m.allocation_id
		WHERE a.node_id = $1 AND m.node_id = $1 AND NOT m.removed AND a.released_at IS NULL ORDER BY 1
		LIMIT $2`, node.ID, maxNodeMembers)
	if err != nil {
		return fmt.Errorf("list what lives on node %s: %w", node.ID, err)
	}
	instances, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("list what lives on node %s: %w", node.ID, err)
	}
	for _, id := range instances {
		err := r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
			return tellInstance(ctx, t, id, node, back)
		})
		if err != nil {
			return fmt.Errorf("update %s for node %s: %w", id, node.ID, err)
		}
	}
	if back {
		r.Log.Info("a node's agent reports again", "node_id", node.ID, "name", node.Name, "instances", len(instances))
		return r.pollSoon(ctx, instances)
	}
	return nil
}

// unheard is the health message of the members of a silent node.
func unheard(node named) string { return "the agent of node " + node.Name + " does not report" }

func tellInstance(ctx context.Context, t *tx.Tx, id ids.ID, node named, back bool) error {
	instance, err := t.Instance.Query().Where(dbinstance.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", id, err)
	}
	if err := wakeOn(ctx, t, id); err != nil {
		return err
	}
	drafts, err := tellMembers(ctx, t, instance, node, back)
	if err != nil || len(drafts) == 0 {
		return err
	}
	if err := roles.Recount(ctx, t, id); err != nil {
		return err
	}
	if err := event.Append(ctx, t, instance, drafts...); err != nil || instance.Status != lifecycle.InstanceRunning {
		return err
	}
	return health.Settle(ctx, t, instance)
}

// tellMembers makes the members' health UNKNOWN while their node is silent. When it is back, it is the
// adapter's next word that says more. The second text of a silent node is that of earlier builds.
func tellMembers(ctx context.Context, t *tx.Tx, instance *db.Instance, node named, back bool) ([]event.Draft, error) {
	found, err := t.Query(ctx, `UPDATE member SET health = 'UNKNOWN', updated_at = $4,
		health_message = CASE WHEN $6 THEN '' ELSE $3 END
		WHERE instance_id = $1 AND node_id = $2 AND NOT removed AND status <> 'FAILED'
		AND (health_message IN ($3, 'the agent of node ' || $5::text || ' is not heard')) = $6
		RETURNING id, component_key, ordinal`, instance.ID, node.ID, unheard(node), t.Now, node.Name, back)
	if err != nil {
		return nil, fmt.Errorf("update the members of %s: %w", instance.ID, err)
	}
	type member struct {
		ID      ids.ID
		Key     string
		Ordinal int
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[member])
	if err != nil {
		return nil, fmt.Errorf("update the members of %s: %w", instance.ID, err)
	}
	var drafts []event.Draft
	for _, one := range list {
		message := fmt.Sprintf("%s %d is unknown: %s", one.Key, one.Ordinal, unheard(node))
		if back {
			message = fmt.Sprintf("the agent of node %s of %s %d reports again", node.Name, one.Key, one.Ordinal)
		}
		drafts = append(drafts, event.Draft{Type: lifecycle.EventMemberChanged, MemberID: one.ID, Message: message,
			Payload: map[string]any{"componentKey": one.Key, "index": one.Ordinal, "health": lifecycle.HealthUnknown,
				"node": node.ID, "reachable": back}})
	}
	return drafts, nil
}

// wakeOn wakes the open operations of an instance.
func wakeOn(ctx context.Context, t *tx.Tx, instance ids.ID) error {
	found, err := t.Query(ctx, `SELECT id FROM operation WHERE instance_id = $1 AND ended_at IS NULL ORDER BY id`,
		instance)
	if err != nil {
		return fmt.Errorf("find operations on %s: %w", instance, err)
	}
	open, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("find operations on %s: %w", instance, err)
	}
	return queue.Wake(ctx, t, open...)
}
