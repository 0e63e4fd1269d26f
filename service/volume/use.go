package volume

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Use is an instance that has a volume in a slot of its manifest.
type Use struct {
	VolumeID, InstanceID, TenantID, ProjectID ids.ID
	InstanceName                              string
	// Family is the instance's permission family.
	Family string
	// Slot is its manifest's name for the place, Path where its members have it.
	Slot, Path string
	ReadOnly   bool
}

// usesSQL reads the uses of volumes by instances that are not released, in the order of instances and slots.
const usesSQL = `SELECT w.id, i.id, i.tenant_id, i.project_id, i.name, i.permission_family, b ->> 'slot', b ->> 'path',
		(b ->> 'readOnly')::boolean
	FROM unnest($1::text[]) w (id) JOIN instance i ON i.volumes IS NOT NULL AND i.released_at IS NULL
		AND i.volumes @> jsonb_build_array(jsonb_build_object('volumeId', w.id))
	CROSS JOIN LATERAL jsonb_array_elements(i.volumes) b WHERE b ->> 'volumeId' = w.id ORDER BY w.id, i.id, b ->> 'slot'`

func scanUse(row pgx.CollectableRow) (*Use, error) {
	u := &Use{}
	return u, row.Scan(&u.VolumeID, &u.InstanceID, &u.TenantID, &u.ProjectID, &u.InstanceName, &u.Family,
		&u.Slot, &u.Path, &u.ReadOnly)
}

// Uses reads which instances use volumes, as far as the caller may see the volumes and the instances.
func (s *Service) Uses(ctx context.Context, volumes []ids.ID) (map[ids.ID][]*Use, error) {
	var found []*Use
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scanUse, usesSQL, volumes))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID][]*Use, len(volumes))
	for _, use := range found {
		key, err := authz.FamilyKey(use.Family, "instance.read")
		if err != nil {
			return nil, err
		}
		if actor.AllowsOn(authz.VolumeRead, authz.Object{TenantID: use.TenantID, ProjectID: use.ProjectID}) &&
			actor.AllowsOn(key, use.object()) {
			out[use.VolumeID] = append(out[use.VolumeID], use)
		}
	}
	return out, nil
}

func (u *Use) object() authz.Object {
	return authz.Object{TenantID: u.TenantID, ProjectID: u.ProjectID, InstanceID: u.InstanceID}
}

// maxNamed bounds the users that a sentence names.
const maxNamed = 10

// unused refuses to end a volume, whose row is locked, that instances use: CONFLICT with a reason for each.
func unused(ctx context.Context, t *tx.Tx, id ids.ID) error {
	users, err := tx.Collect(ctx, t, scanUse, usesSQL, []ids.ID{id})
	if err != nil {
		return fmt.Errorf("find the users of volume %s: %w", id, err)
	}
	if len(users) == 0 {
		return nil
	}
	names := make([]string, len(users))
	reasons := make([]fault.Reason, len(users))
	for i, use := range users {
		names[i] = fmt.Sprintf("%s (%s)", use.InstanceName, use.Slot)
		reasons[i] = fault.Reason{Code: fault.VolumeInUse, Path: "volumeId",
			Message: fmt.Sprintf("instance %s (%s) has it in its slot %q", use.InstanceName, use.InstanceID, use.Slot)}
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fault.New(fault.Conflict, "instances use the volume: %s; decommission them first", text).
		With(reasons[:min(len(reasons), fault.MaxReasons)]...)
}
