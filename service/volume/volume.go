// Package volume holds the verbs on storage classes, which operators make of what nodes serve, and on volumes: files of
// a project that outlast the members which use them. See docs/adr/0119.
package volume

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/scope"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Service holds the verbs and reads.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Volume is files of a project that outlast the members which use them.
type Volume struct {
	ID, TenantID, ProjectID ids.ID
	// Name is unique among the project's volumes that are not deleted.
	Name string
	// StorageClass is what it lies in.
	StorageClass *Class
	SizeGiB      int
	Status       volume.Status
	// NodeID is where a local one is, from its first use on.
	NodeID *ids.ID
	// UsedBytes is the newest measure, as of MeasuredAt; nil before there is one.
	UsedBytes  *int64
	MeasuredAt *time.Time
	// Message is what a node last reported of it; empty for nothing.
	Message   string
	CreatedBy ids.ID
	CreatedAt time.Time
	// DeletedAt is when nothing was left of it.
	DeletedAt *time.Time
}

// IsNode marks a volume as an object with a global id.
func (*Volume) IsNode() {}

// GetID returns it.
func (v *Volume) GetID() ids.ID { return v.ID }

// columns are what scan reads, from volume v and storage_class c.
const columns = `v.id, v.tenant_id, v.project_id, v.name, v.size_gib, v.status, v.node_id, v.used_bytes, v.measured_at,
	v.message, v.created_by, v.created_at, v.deleted_at, ` + classColumns

const from = ` FROM volume v JOIN storage_class c ON c.id = v.storage_class_id `

func scan(row pgx.CollectableRow) (*Volume, error) {
	v := &Volume{StorageClass: &Class{}}
	return v, row.Scan(append([]any{&v.ID, &v.TenantID, &v.ProjectID, &v.Name, &v.SizeGiB, (*string)(&v.Status),
		&v.NodeID, &v.UsedBytes, &v.MeasuredAt, &v.Message, &v.CreatedBy, &v.CreatedAt, &v.DeletedAt},
		v.StorageClass.into()...)...)
}

// object is a volume as an object of authorisation.
func (v *Volume) object() authz.Object {
	return authz.Object{TenantID: v.TenantID, ProjectID: v.ProjectID}
}

// locked locks a volume and requires a key on it.
func locked(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*Volume, error) {
	found, err := tx.Collect(ctx, t, scan, `SELECT `+columns+from+`WHERE v.id = $1 FOR UPDATE OF v`, id)
	if err != nil {
		return nil, fmt.Errorf("lock volume %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, audit.Missing(t, action, key, id)
	}
	return found[0], audit.Require(t, action, key, found[0].object(), id)
}

// Get reads a volume. It requires volume.read. NOT_FOUND when it is missing or hidden.
func (s *Service) Get(ctx context.Context, id ids.ID) (*Volume, error) {
	var found *Volume
	actor, err := s.DB.Read(ctx, tx.Row(&found, scan, `SELECT `+columns+from+`WHERE v.id = $1`, id))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.RequireOn(actor, authz.VolumeRead, found.object()); err != nil {
		return nil, err
	}
	return found, nil
}

// Filter chooses volumes of a project.
type Filter struct {
	ProjectID ids.ID
	// Deleted adds those of which nothing is left.
	Deleted bool
}

// list names the cursors of volume lists.
const list = "volumes"

// List reads the volumes of a project, newest first. It requires volume.read on the project. NOT_FOUND when the project
// is missing or hidden.
func (s *Service) List(ctx context.Context, filter Filter, args page.Args) (*page.Page[*Volume], error) {
	var after ids.ID
	if err := args.Decode(list, &after); err != nil {
		return nil, err
	}
	at := scope.Scope{ProjectID: &filter.ProjectID}
	var found []*Volume
	actor, err := s.DB.Read(ctx, at.With(tx.Rows(&found, scan, `SELECT `+columns+from+`WHERE v.project_id = $1
		AND ($2 OR v.deleted_at IS NULL) AND ($3 = '' OR v.id < $3) ORDER BY v.id DESC LIMIT $4`,
		filter.ProjectID, filter.Deleted, string(after), args.First+1))...)
	if err != nil {
		return nil, err
	}
	if err := at.Require(actor, authz.VolumeRead); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(v *Volume) string { return page.Cursor(list, v.ID) }), nil
}

// shown is what the audit keeps of a volume.
func shown(v *Volume) map[string]any {
	return map[string]any{"volume": v.ID, "name": v.Name, "storageClass": v.StorageClass.Name, "sizeGiB": v.SizeGiB,
		"status": v.Status}
}
