package node

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// list names the cursors of node lists.
const list = "nodes"

// HeartbeatInput is a node's sign of life.
type HeartbeatInput struct {
	AgentVersion, BootID string
	Inventory            *Inventory // nil when nothing changed
	// MemoryKills are counts that the platform may not know yet.
	MemoryKills []MemoryKills
	// MemberFindings are members that failed, in each heartbeat for as long as the finding holds.
	MemberFindings []MemberFinding
	// ProcessRestarts are counts that the platform may not know yet.
	ProcessRestarts []ProcessRestarts
	// Conditions are what the agent's checks found, all of them; nil when nothing changed.
	Conditions []nodehealth.Condition
	// MemberUsage is what members use, all that are measured; nil without a newer sample.
	MemberUsage []MemberUsage
}

const (
	// seatSQL gives addresses to members that are older than their node's networks, and returns their instances. It
	// runs before the node is locked.
	seatSQL = `SELECT platform.seat_network()`
	beatSQL = `UPDATE compute_node SET last_seen_at = $2, agent_version = $3, boot_id = $4,
		booted_at = CASE WHEN boot_id <> $4 THEN $2 ELSE booted_at END,
		status = CASE status WHEN 'OFFLINE' THEN 'ONLINE' ELSE status END WHERE id = $1
		RETURNING ` + rows.ComputeNodeColumns
	conditionsSQL = `UPDATE compute_node SET conditions = $2 WHERE id = $1 RETURNING ` + rows.ComputeNodeColumns
	changeSQL     = `UPDATE compute_node SET region = $2, sku = $3, cpus = $4, memory_mib = $5, gpus = $6,
		gpu_model = $7,
		gpus_simulated = $8,
		isolation = $9, kernel = $10, labels = $11, walls = $12, devices = $13, storage = $14 WHERE id = $1
		RETURNING ` + rows.ComputeNodeColumns
)

// Heartbeat notes that the calling node is alive, and what changed on it. It requires node.report.
// Faults: INVALID_ARGUMENT, FORBIDDEN.
func (s *Service) Heartbeat(ctx context.Context, in HeartbeatInput) (*db.ComputeNode, error) {
	wrong := &check.Input{}
	agent(wrong, in.AgentVersion, in.BootID)
	if in.Inventory != nil {
		in.Inventory.check(wrong, "input.inventory")
	}
	checkKills(wrong, in.MemoryKills)
	checkFindings(wrong, in.MemberFindings)
	checkRestarts(wrong, in.ProcessRestarts)
	checkConditions(wrong, in.Conditions)
	checkUsage(wrong, in.MemberUsage)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *db.ComputeNode
	var agent *authz.Actor
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		if err := audit.Require(t, "nodeHeartbeat", authz.NodeReport, object(t.Actor), t.Actor.NodeID); err != nil {
			return err
		}
		agent = t.Actor
		batch := &pgx.Batch{}
		batch.Queue(seatSQL).Query(func(found pgx.Rows) error { return wakeSeated(t, found) })
		batch.Queue(beatSQL, t.Actor.NodeID, t.Now, in.AgentVersion, in.BootID).Query(func(found pgx.Rows) (err error) {
			out, err = first(found)
			return err
		})
		queueUsage(batch, in.MemberUsage)
		if err = t.SendBatch(ctx, batch).Close(); err == nil && out != nil && in.Inventory != nil {
			v := in.Inventory
			out, err = one(ctx, t, changeSQL, t.Actor.NodeID, v.Region, v.SKU, v.CPUs, v.MemoryMiB, v.GPUs, v.GPUModel,
				v.GPUsSimulated,
				v.Isolation, v.Kernel, document(v.Labels), v.Walls, devices(v.Devices), storages(v.Storage))
		}
		if err == nil && out != nil && in.Conditions != nil {
			out, err = one(ctx, t, conditionsSQL, t.Actor.NodeID,
				nodehealth.Merge(out.Conditions, in.Conditions, t.Now))
		}
		if err != nil {
			return fmt.Errorf("heartbeat of %s: %w", t.Actor.NodeID, err)
		}
		if out == nil {
			return fault.NoSuch()
		}
		return nil
	})
	if err == nil {
		err = s.tell(ctx, agent, in)
	}
	return out, err
}

// tell appends what is new in a node's report to the instances' timelines, each in a transaction of its own: the node
// itself may not write a timeline.
func (s *Service) tell(ctx context.Context, agent *authz.Actor, in HeartbeatInput) error {
	if err := tellCounts(ctx, s, agent, in.MemoryKills); err != nil {
		return err
	}
	if err := tellCounts(ctx, s, agent, in.ProcessRestarts); err != nil {
		return err
	}
	return s.fail(ctx, agent, in.MemberFindings)
}

// wakeSeated wakes the nodes of instances whose members have got addresses.
func wakeSeated(t *tx.Tx, found pgx.Rows) error {
	var instance ids.ID
	_, err := pgx.ForEachRow(found, []any{&instance}, func() error {
		t.Wake(event.InstanceTopic(instance))
		return nil
	})
	return err
}

// checkConditions notes what is wrong with the conditions of a report.
func checkConditions(in *check.Input, reported []nodehealth.Condition) {
	whole(in, "input.conditions", len(reported), 0, nodehealth.MaxConditions)
	if at, field, why, ok := nodehealth.Check(reported); !ok {
		in.Bad(fmt.Sprintf("input.conditions.%d.%s", at, field), "%s", why)
	}
	for i, one := range reported {
		in.Text(fmt.Sprintf("input.conditions.%d.message", i), one.Message, 0, nodehealth.MaxMessage)
	}
}

// one reads at most one node; nil when the query finds nothing.
func one(ctx context.Context, t *tx.Tx, sql string, args ...any) (*db.ComputeNode, error) {
	found, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return first(found)
}

// first returns the first node of what was found; nil when nothing was.
func first(found pgx.Rows) (*db.ComputeNode, error) {
	collected, err := pgx.CollectRows(found, rows.ComputeNode)
	if err != nil || len(collected) == 0 {
		return nil, err
	}
	return collected[0], nil
}

// document is a JSON column's value; nil for none.
func document(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return []byte(raw)
}

// List reads the nodes of the platform by name. It requires node.read on the platform.
func (s *Service) List(ctx context.Context, args page.Args) (*page.Page[*db.ComputeNode], error) {
	var after string
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	var found []*db.ComputeNode
	actor, err := s.DB.Read(ctx, tx.Rows(&found, rows.ComputeNode,
		`SELECT `+rows.ComputeNodeColumns+` FROM compute_node WHERE name > $1 AND deleted_at IS NULL ORDER BY name
			LIMIT $2`, after, args.First+1))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireOn(actor, authz.NodeRead, authz.Object{}); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.ComputeNode) string { return page.Cursor(list, row.Name) }), nil
}

// Get reads a node. NOT_FOUND when it is missing or hidden; see Many.
func (s *Service) Get(ctx context.Context, id ids.ID) (*db.ComputeNode, error) {
	found, err := s.Many(ctx, []ids.ID{id})
	if err != nil {
		return nil, err
	}
	if found[id] == nil {
		return nil, fault.NoSuch()
	}
	return found[id], nil
}

// holding is an allocation that holds a node, as authorisation sees it.
type holding struct {
	node  ids.ID
	where authz.Object
}

// Many reads nodes by id; those missing or hidden are left out. A caller sees a node with node.read
// on the platform, or with allocation.read on an allocation that holds it.
func (s *Service) Many(ctx context.Context, wanted []ids.ID) (map[ids.ID]*db.ComputeNode, error) {
	var found []*db.ComputeNode
	var held []holding
	actor, err := s.DB.Read(ctx,
		tx.Rows(&found, rows.ComputeNode, `SELECT `+rows.ComputeNodeColumns+` FROM compute_node
			WHERE id = ANY ($1)`, wanted),
		tx.Rows(&held, func(row pgx.CollectableRow) (holding, error) {
			var x holding
			return x, row.Scan(&x.node, &x.where.TenantID, &x.where.ProjectID, &x.where.InstanceID)
		}, `SELECT DISTINCT node_id, tenant_id, project_id, coalesce(instance_id, '') FROM allocation
			WHERE node_id = ANY ($1) AND released_at IS NULL`, wanted))
	if err != nil {
		return nil, err
	}
	seen := make(map[ids.ID]bool, len(found))
	for _, h := range held {
		seen[h.node] = seen[h.node] || actor.AllowsOn(authz.AllocationRead, h.where)
	}
	everywhere := actor.AllowsOn(authz.NodeRead, authz.Object{})
	byID := make(map[ids.ID]*db.ComputeNode, len(found))
	for _, row := range found {
		if everywhere || seen[row.ID] {
			byID[row.ID] = row
		}
	}
	return byID, nil
}
