// Package relay reads any object by its id alone, as the Relay specification has it.
package relay

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Read reads an object of one kind.
type Read func(ctx context.Context, id ids.ID) (model.Node, error)

// Reads are which read answers for which kind of id.
type Reads map[ids.Kind]Read

// Node reads any object by its id; the id's prefix says which read it is.
func (r Reads) Node(ctx context.Context, db *tx.DB, id ids.ID) (model.Node, error) {
	read, ok := r[id.Kind()]
	if !ok || !id.Valid() {
		if _, err := db.Read(ctx); err != nil {
			return nil, err // a credential that is not valid is told so, whatever it asks for
		}
		return nil, fault.NoSuch()
	}
	return read(ctx, id)
}

// As makes a read of one type answer as a node; an error must not come with a typed nil.
func As[T model.Node](read func(ctx context.Context, id ids.ID) (T, error)) Read {
	return func(ctx context.Context, id ids.ID) (model.Node, error) {
		found, err := read(ctx, id)
		if err != nil {
			return nil, err
		}
		return found, nil
	}
}
