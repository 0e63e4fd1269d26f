package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/internal/tx"
)

// maxTenancy bounds the members of one read.
const maxTenancy = 500

// Member is a member on a node, with what an operator sees of it: whose it is, and what acts on it.
type Member struct {
	MemberID, InstanceID, TenantID, ProjectID ids.ID
	ComponentKey                              string
	Index                                     int
	Status                                    lifecycle.MemberStatus
	Health                                    lifecycle.Health
	InstanceName, AppSlug, Tenant, Project    string
	InstanceStatus                            lifecycle.InstanceStatus
	AllocationID                              *ids.ID
	UpdatedAt                                 time.Time
	// OperationID is the open operation that acts on it; nil for none.
	OperationID *ids.ID
	// Refusal is why the node's drain could not drain it when that was last tried; nil for none.
	Refusal *nodehealth.Refusal
}

const tenancySQL = `SELECT m.id, m.instance_id, m.tenant_id, m.project_id, m.component_key, m.ordinal, m.status,
	m.health, i.name, i.app_slug,
	t.slug, p.slug, i.status, m.allocation_id, m.updated_at, o.id, n.drain -> 'refused' -> m.id
	FROM member m JOIN instance i ON i.id = m.instance_id JOIN tenant t ON t.id = m.tenant_id
	JOIN project p ON p.id = m.project_id
	JOIN compute_node n ON n.id = m.node_id
	LEFT JOIN LATERAL (SELECT id FROM operation WHERE instance_id = m.instance_id AND ended_at IS NULL
		AND (targets IS NULL OR targets = '[]' OR targets ? m.id) ORDER BY id LIMIT 1) o ON true
	WHERE m.node_id = $1 AND NOT m.removed AND m.id > $2 ORDER BY m.id LIMIT $3`

// Tenancy reads at most 500 members on a node, of every tenant, in the order of their ids, behind the one that after
// names; empty begins with the first. It requires node.read on the platform.
func (s *Service) Tenancy(ctx context.Context, node, after ids.ID) ([]*Member, error) {
	found := []*Member{}
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scanMember, tenancySQL, node, after, maxTenancy))
	if err != nil {
		return nil, err
	}
	if err := authz.RequireOn(actor, authz.NodeRead, authz.Object{}); err != nil {
		return nil, err
	}
	return found, nil
}

func scanMember(row pgx.CollectableRow) (*Member, error) {
	m := new(Member)
	return m, row.Scan(&m.MemberID, &m.InstanceID, &m.TenantID, &m.ProjectID, &m.ComponentKey, &m.Index, &m.Status,
		&m.Health,
		&m.InstanceName, &m.AppSlug, &m.Tenant, &m.Project, &m.InstanceStatus, &m.AllocationID, &m.UpdatedAt,
		&m.OperationID,
		&m.Refusal)
}
