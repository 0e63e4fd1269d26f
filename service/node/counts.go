package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
)

// count is how often something happened to a member, as its node's agent reports it.
type count interface {
	member() ids.ID
	// tell adds what is new to the timeline of the member's instance, whose row is locked.
	tell(ctx context.Context, t *tx.Tx, of *resident) error
}

// resident is a member that lives on the calling node.
type resident struct {
	instance  *db.Instance // locked
	component string
	ordinal   int
}

// tellCounts writes each count to its timeline, in a transaction of its own. It ignores members that are not on the
// calling node, that are removed, or whose instance does not exist any more.
func tellCounts[C count](ctx context.Context, s *Service, agent *authz.Actor, counts []C) error {
	for _, one := range counts {
		err := s.DB.As(ctx, agent, func(ctx context.Context, t *tx.Tx) error {
			of, err := residentOf(ctx, t, one.member())
			if err != nil || of == nil {
				return err
			}
			return one.tell(ctx, t, of)
		})
		if err != nil {
			return fmt.Errorf("report the counts of %s: %w", one.member(), err)
		}
	}
	return nil
}

func residentOf(ctx context.Context, t *tx.Tx, member ids.ID) (*resident, error) {
	var of ids.ID
	found := &resident{}
	err := t.QueryRow(ctx, `SELECT instance_id, component_key, ordinal FROM member
		WHERE id = $1 AND node_id = $2 AND status <> 'REMOVED'`, member, t.Actor.NodeID).
		Scan((*string)(&of), &found.component, &found.ordinal)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found.instance, err = t.Instance.Query().Where(dbinstance.ID(of)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}
