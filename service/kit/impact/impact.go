// Package impact reads the blast radius of an operation on an instance: the projects that its control plane
// serves, and refuses what would hit them unseen.
package impact

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Impact is who and what an operation on an instance would touch.
type Impact struct {
	InstanceID        ids.ID
	ControlPlaneScope lifecycle.ControlPlaneScope
	// Projects are those it serves, its own first, at most 100.
	Projects       []*Project
	AttachedTotal  int
	MembersTotal   int
	OpenOperations int
	// TenantID is the tenant that all of them are of.
	TenantID ids.ID
}

// Project is one that a change of a control plane would touch.
type Project struct {
	ProjectID   ids.ID
	DisplayName string
	AttachedAt  *time.Time // nil for the instance's own
	// Subjects are the people and service accounts that hold a key of one of the app's actions there.
	Subjects int
	// RecentActions are those of the last 24 hours, counted among the instance's newest 10,000 audit entries.
	RecentActions int
}

const impactSQL = `SELECT tenant_id, control_plane_scope, members, operations, attached, project_id, display_name,
	attached_at, subjects, recent
	FROM platform.impact_of($1, $2, $3)`

// Of reads the blast radius of an instance whose project the caller reaches, in one statement. The caller of Of
// has authorised.
func Of(ctx context.Context, t *tx.Tx, instanceID ids.ID) (*Impact, error) {
	roles, keys := rolePairs()
	found, err := t.Query(ctx, impactSQL, instanceID, roles, keys)
	if err != nil {
		return nil, fmt.Errorf("gauge the impact on %s: %w", instanceID, err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowToStructByPos[line])
	if err != nil {
		return nil, fmt.Errorf("gauge the impact on %s: %w", instanceID, err)
	}
	return fold(instanceID, lines), nil
}

// Read returns the blast radius by itself. Key: control_plane.read on the instance's project. NOT_FOUND when the
// instance is missing or hidden.
func Read(ctx context.Context, database *tx.DB, instanceID ids.ID) (*Impact, error) {
	roles, keys := rolePairs()
	var lines []line
	actor, err := database.Read(ctx, tx.Rows(&lines, pgx.RowToStructByPos[line], impactSQL, instanceID, roles, keys))
	if err != nil {
		return nil, err
	}
	out := fold(instanceID, lines)
	if len(out.Projects) == 0 {
		return nil, fault.NoSuch()
	}
	where := authz.Object{TenantID: out.TenantID, ProjectID: out.Projects[0].ProjectID, InstanceID: instanceID}
	return out, authz.RequireOn(actor, authz.ControlPlaneRead, where)
}

// line is a row of platform.impact_of: the instance's own numbers are in each.
type line struct {
	TenantID, Scope               string
	Members, Operations, Attached int
	ProjectID, DisplayName        string
	AttachedAt                    *time.Time
	Subjects, Recent              int
}

func fold(instanceID ids.ID, lines []line) *Impact {
	out := &Impact{InstanceID: instanceID, Projects: make([]*Project, 0, len(lines))}
	for _, one := range lines {
		out.TenantID, out.ControlPlaneScope = ids.ID(one.TenantID), lifecycle.ControlPlaneScope(one.Scope)
		out.AttachedTotal, out.MembersTotal, out.OpenOperations = one.Attached, one.Members, one.Operations
		out.Projects = append(out.Projects, &Project{ProjectID: ids.ID(one.ProjectID), DisplayName: one.DisplayName,
			AttachedAt: one.AttachedAt,
			Subjects:   one.Subjects, RecentActions: one.Recent})
	}
	return out
}
