package membermetric

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
)

// MaxUsages bounds the members of an answer.
const MaxUsages = 1_000

// Usage is what a member uses now: its newest sample.
type Usage struct {
	MemberID, InstanceID       ids.ID
	InstanceName, ComponentKey string
	Index                      int
	Status                     lifecycle.MemberStatus
	AllocationID               *ids.ID
	// At is when the platform received the sample; nil without one.
	At *time.Time
	// Stale reports whether the sample is missing or older than a minute.
	Stale bool
	nodemetrics.Sample

	family string
}

// scope is a project, and whether the requested instance is in it.
type scope struct {
	tenant, project ids.ID
	instance        bool
}

const (
	scopeSQL = `SELECT tenant_id, id, $2::text IS NULL OR EXISTS (SELECT FROM instance i WHERE i.id = $2
		AND i.project_id = p.id)
		FROM project p WHERE id = $1`
	usageSQL = `SELECT m.id, m.instance_id, i.name, m.component_key, m.ordinal, m.status, m.allocation_id,
		u.at, coalesce(u.at < now() - interval '1 minute', true), u.sample, i.permission_family
		FROM member m JOIN instance i ON i.id = m.instance_id LEFT JOIN member_usage u ON u.member_id = m.id
		WHERE m.project_id = $1 AND ($2::text IS NULL OR m.instance_id = $2) AND NOT m.removed
		ORDER BY i.name, m.instance_id, m.component_key, m.ordinal, m.id LIMIT $3`
)

func scanScope(row pgx.CollectableRow) (*scope, error) {
	s := &scope{}
	return s, row.Scan(&s.tenant, &s.project, &s.instance)
}

func scanUsage(row pgx.CollectableRow) (*Usage, error) {
	u, raw := &Usage{}, []byte(nil)
	if err := row.Scan(&u.MemberID, &u.InstanceID, &u.InstanceName, &u.ComponentKey, &u.Index, &u.Status,
		&u.AllocationID, &u.At, &u.Stale, &raw, &u.family); err != nil || raw == nil {
		return u, err
	}
	return u, json.Unmarshal(raw, &u.Sample)
}

// Now reads what the members of a project use now, or those of an instance of it. It requires <family>.node.read of any
// family, and leaves out the instances of which the caller may not read members. More reports that there are
// members beyond MaxUsages. Faults: NOT_FOUND for a project, and for an instance that is not of it, FORBIDDEN.
func (s *Service) Now(ctx context.Context, projectID ids.ID, instanceID *ids.ID) (usages []*Usage, more bool,
	err error) {
	var of *scope
	var found []*Usage
	actor, err := s.DB.Read(ctx, tx.Row(&of, scanScope, scopeSQL, projectID, instanceID),
		tx.Rows(&found, scanUsage, usageSQL, projectID, instanceID, MaxUsages+1))
	if err != nil {
		return nil, false, err
	}
	if of == nil {
		return nil, false, fault.NoSuch()
	}
	object := authz.Object{TenantID: of.tenant, ProjectID: of.project}
	if instanceID != nil {
		object.InstanceID = *instanceID
	}
	if err := authz.RequireAny(actor, object, authz.FamilyKeys("node.read")...); err != nil {
		return nil, false, err
	}
	if !of.instance {
		return nil, false, fault.NoSuch()
	}
	if more = len(found) > MaxUsages; more {
		found = found[:MaxUsages]
	}
	usages = make([]*Usage, 0, len(found))
	for _, one := range found {
		object.InstanceID = one.InstanceID
		if key, err := authz.FamilyKey(one.family, "node.read"); err == nil && actor.AllowsOn(key, object) {
			usages = append(usages, one)
		}
	}
	return usages, more, nil
}
