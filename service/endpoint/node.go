package endpoint

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Node returns the node whose agent calls. Key: node.report on the node.
func (s *Service) Node(ctx context.Context) (ids.ID, error) {
	actor, err := s.DB.Read(ctx)
	if err != nil {
		return "", err
	}
	return actor.NodeID, authz.RequireOn(actor, authz.NodeReport, authz.Object{NodeID: actor.NodeID})
}

// Attach notes that this process holds the tunnel of a node; a process that held it before does not any more.
func (s *Service) Attach(ctx context.Context, node ids.ID) error {
	return s.note(ctx, node, func(ctx context.Context, t *tx.Tx) error {
		_, err := t.Exec(ctx, `INSERT INTO node_tunnel (node_id, process_id, address, connected_at)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT (node_id) DO UPDATE SET process_id = $2, address = $3, connected_at = $4`,
			node, s.Process, s.Address, t.Now)
		return err
	})
}

// Detach notes that this process does not hold the tunnel of a node any more, unless another one has taken it.
func (s *Service) Detach(ctx context.Context, node ids.ID) error {
	return s.note(ctx, node, func(ctx context.Context, t *tx.Tx) error {
		_, err := t.Exec(ctx, `DELETE FROM node_tunnel WHERE node_id = $1 AND process_id = $2`, node, s.Process)
		return err
	})
}

// note writes as the platform itself: a node may read no tunnels.
func (s *Service) note(ctx context.Context, node ids.ID, write func(context.Context, *tx.Tx) error) error {
	if err := s.DB.As(ctx, nil, write); err != nil {
		return fmt.Errorf("note the tunnel of %s: %w", node, err)
	}
	return nil
}
