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
	"github.com/gpuaas/app-platform/service/kit/check"
)

// Class is a storage class: what nodes serve under a name, offered to everybody.
type Class struct {
	ID ids.ID
	// Name is what nodes call the storage.
	Name string
	Kind volume.Kind
	// Title and Description are for people.
	Title, Description string
	// Disabled classes take no new volumes.
	Disabled             bool
	CreatedAt, UpdatedAt time.Time
}

// classColumns are what Class.into reads, from storage_class c.
const classColumns = `c.id, c.name, c.kind, c.title, c.description, c.disabled, c.created_at, c.updated_at`

func (c *Class) into() []any {
	return []any{&c.ID, &c.Name, (*string)(&c.Kind), &c.Title, &c.Description, &c.Disabled, &c.CreatedAt, &c.UpdatedAt}
}

func scanClass(row pgx.CollectableRow) (*Class, error) {
	c := &Class{}
	return c, row.Scan(c.into()...)
}

// maxClasses bounds a list.
const maxClasses = 500

// Bounds of the texts of a class, in characters.
const maxTitle, maxDescription = 80, 500

// Classes lists the storage classes by name, at most 500, to everyone who is logged in.
func (s *Service) Classes(ctx context.Context) ([]*Class, error) {
	out := []*Class{}
	_, err := s.DB.Read(ctx, tx.Rows(&out, scanClass, `SELECT `+classColumns+` FROM storage_class c ORDER BY c.name
		LIMIT $1`,
		maxClasses))
	return out, err
}

// Offer is what the nodes that are online offer of a storage class.
type Offer struct {
	// Nodes is how many.
	Nodes int
	// TotalBytes and FreeBytes are sums over the nodes; for a shared file system they are its own.
	TotalBytes, FreeBytes int64
	// SizeEnforced reports whether no volume on any of them holds more than its size.
	SizeEnforced bool
}

// Offers reads what nodes offer of storage classes. Classes that no node offers are left out. Any logged-in caller
// may.
func (s *Service) Offers(ctx context.Context, classes []ids.ID) (map[ids.ID]*Offer, error) {
	out := make(map[ids.ID]*Offer, len(classes))
	_, err := s.DB.Read(ctx, tx.Query{Args: []any{classes}, SQL: `SELECT storage_class_id, nodes, total_bytes,
		free_bytes,
		size_enforced FROM platform.storage_offers() WHERE storage_class_id = ANY ($1)`,
		Scan: func(found pgx.Rows) error {
			var id ids.ID
			var one Offer
			_, err := pgx.ForEachRow(found, []any{&id, &one.Nodes, &one.TotalBytes, &one.FreeBytes, &one.SizeEnforced},
				func() error {
					copied := one
					out[id] = &copied
					return nil
				})
			return err
		}})
	return out, err
}

// classOf finds the class that an input names by its name or its id: NOT_FOUND or, where it takes no new volumes,
// FAILED_PRECONDITION at the path.
func classOf(ctx context.Context, t *tx.Tx, named, path string) (*Class, error) {
	found, err := tx.Collect(ctx, t, scanClass,
		`SELECT `+classColumns+` FROM storage_class c WHERE c.id = $1 OR c.name = $1`, named)
	if err != nil {
		return nil, fmt.Errorf("find storage class %s: %w", named, err)
	}
	if len(found) == 0 {
		return nil, fault.New(fault.NotFound, "there is no storage class %q", named).At(path)
	}
	if found[0].Disabled {
		return nil, fault.New(fault.FailedPrecondition, "storage class %q takes no new volumes", found[0].Name).At(path)
	}
	return found[0], nil
}

// checkText finds what is wrong with the texts of a class; nil for one that is left out.
func checkText(wrong *check.Input, title, description *string) {
	if title != nil {
		wrong.Text("input.title", *title, 1, maxTitle)
	}
	if description != nil {
		wrong.Text("input.description", *description, 0, maxDescription)
	}
}

// object is a storage class as an object of authorisation: the platform.
var object = authz.Object{}

func shownClass(c *Class) map[string]any {
	return map[string]any{"name": c.Name, "kind": c.Kind, "title": c.Title, "description": c.Description,
		"disabled": c.Disabled}
}
