package node

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Network returns what the calling node's agent needs of the members' network. When that is of the known version it
// waits for another one, at most waitSeconds. It requires task.execute on the node. Faults: INVALID_ARGUMENT,
// FORBIDDEN.
func (s *Service) Network(ctx context.Context, known string, waitSeconds int) (*nodenet.View, error) {
	return follow(ctx, s, known, waitSeconds, func(ctx context.Context) (*nodenet.View, string, []string, error) {
		view, node, err := s.network(ctx)
		if err != nil {
			return nil, "", nil, err
		}
		return view, view.Version, topicsOf(node, view), nil
	})
}

// topicsOf returns the topics that are woken when a node's view may have changed: the node has members of another
// instance; an instance in the view, or what that shares, has changed; another node has joined.
func topicsOf(node ids.ID, view *nodenet.View) []string {
	topics := []string{event.NodeTopic(node), event.NodesTopic}
	for _, instance := range view.Instances {
		topics = append(topics, event.InstanceTopic(instance.ID))
	}
	return topics
}

// network reads the view as the caller, and so authenticates the caller each time.
func (s *Service) network(ctx context.Context) (*nodenet.View, ids.ID, error) {
	var stored *json.RawMessage
	actor, err := s.DB.Read(ctx, tx.Row(&stored, func(row pgx.CollectableRow) (*json.RawMessage, error) {
		var text []byte
		err := row.Scan(&text)
		return (*json.RawMessage)(&text), err
	}, `SELECT platform.node_network()`))
	if err != nil {
		return nil, "", err
	}
	if err := authz.RequireOn(actor, authz.TaskExecute, authz.Object{NodeID: actor.NodeID}); err != nil {
		return nil, "", err
	}
	if stored == nil || len(*stored) == 0 {
		return nil, "", fault.NoSuch()
	}
	var view nodenet.View
	if err := json.Unmarshal(*stored, &view); err != nil {
		return nil, "", fmt.Errorf("read the network of %s: %w", actor.NodeID, err)
	}
	view = view.Versioned()
	return &view, actor.NodeID, nil
}
