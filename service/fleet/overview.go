package fleet

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Bounds of an overview.
const (
	maxCapacity = 200
	maxTroubled = 200
	maxStuck    = 100
)

// Capacity is what the nodes of one region and SKU have, and what of it is rented.
type Capacity struct {
	Region, SKU string
	// Nodes are all that are not retired; Online are those whose agent answers, Taking those of them that take members.
	Nodes, Online, Taking int
	// GPUs are those of all nodes, GPUsRented what allocations hold, and GPUsFree what could be rented now.
	GPUs, GPUsRented, GPUsFree int
	// FreeNodes take members and are rented by no one.
	FreeNodes int
}

// Overview is all nodes at once: what there is, what is wrong with it, and what does not go on.
type Overview struct {
	Capacity []*Capacity
	// Troubled are the nodes that are offline, cordoned, drained, or have a condition that keeps members away.
	Troubled []*db.ComputeNode
	// Stuck are open operations of every tenant that are past their deadline, fail again and again, or are older than
	// ten minutes, the oldest first.
	Stuck []*operation.View
}

const capacitySQL = `SELECT n.region, n.sku, count(*), count(*) FILTER (WHERE n.status = 'ONLINE'), count(*) FILTER
	(WHERE platform.takes_members(n)),
	coalesce(sum(n.gpus), 0), coalesce(sum(h.used), 0),
	coalesce(sum(CASE WHEN platform.takes_members(n) AND h.whole IS NOT TRUE THEN n.gpus - coalesce(h.used, 0) ELSE 0 END), 0),
	count(*) FILTER (WHERE platform.takes_members(n) AND h.node_id IS NULL)
	FROM compute_node n LEFT JOIN platform.held_of_nodes() h ON h.node_id = n.id
	WHERE n.status <> 'RETIRED' AND n.deleted_at IS NULL GROUP BY n.region, n.sku ORDER BY n.region, n.sku LIMIT $1`

const troubledSQL = `SELECT ` + rows.ComputeNodeColumns + ` FROM compute_node WHERE status <> 'RETIRED'
	AND deleted_at IS NULL
	AND NOT platform.takes_members(compute_node) ORDER BY name LIMIT $1`

const stuckSQL = `SELECT ` + operation.Columns + ` FROM operation WHERE ended_at IS NULL AND (deadline < now()
	OR failures >= 10
	OR created_at < now() - interval '10 minutes') ORDER BY created_at, id LIMIT $1`

// Overview reads all nodes at once, across tenants. It requires node.read and operation.read on the platform.
func (s *Service) Overview(ctx context.Context) (*Overview, error) {
	out := &Overview{Capacity: []*Capacity{}, Troubled: []*db.ComputeNode{}, Stuck: []*operation.View{}}
	actor, err := s.DB.Read(ctx,
		tx.Rows(&out.Capacity, scanCapacity, capacitySQL, maxCapacity),
		tx.Rows(&out.Troubled, rows.ComputeNode, troubledSQL, maxTroubled),
		tx.Rows(&out.Stuck, operation.Scan, stuckSQL, maxStuck))
	if err != nil {
		return nil, err
	}
	for _, key := range []authz.Key{authz.NodeRead, authz.OperationRead} {
		if err := authz.RequireOn(actor, key, authz.Object{}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func scanCapacity(row pgx.CollectableRow) (*Capacity, error) {
	c := new(Capacity)
	return c, row.Scan(&c.Region, &c.SKU, &c.Nodes, &c.Online, &c.Taking, &c.GPUs, &c.GPUsRented, &c.GPUsFree,
		&c.FreeNodes)
}
