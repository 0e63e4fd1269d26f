package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodenet"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

const (
	// maxWait bounds how long Network waits for a change, in seconds.
	maxWait = 20
	// maxVersion is the longest version that a caller may name, in bytes.
	maxVersion = 64
)

// Network returns what the calling node's agent needs of the members' network. When that is of the known version it
// waits for another one, at most waitSeconds. It asks for task.execute on the node. Faults: INVALID_ARGUMENT,
// FORBIDDEN.
func (s *Service) Network(ctx context.Context, known string, waitSeconds int) (*nodenet.View, error) {
	wrong := &check.Input{}
	whole(wrong, "waitSeconds", waitSeconds, 0, maxWait)
	wrong.Text("known", known, 0, maxVersion)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	over := time.NewTimer(time.Duration(waitSeconds) * time.Second)
	defer over.Stop()
	var topics []string
	for {
		waiter := s.Hub.Wait(topics...) // before what it waits for is read
		view, node, err := s.network(ctx)
		if err != nil || view.Version != known || waitSeconds == 0 {
			waiter.Close()
			return view, err
		}
		more := true
		if now := topicsOf(node, view); slices.Equal(now, topics) {
			more, err = s.await(ctx, waiter, over.C)
		} else {
			topics = now
		}
		waiter.Close()
		if err != nil || !more {
			return view, err
		}
	}
}

// topicsOf are what is woken when a node's view may have changed: the node has members of another instance; an instance
// that it knows has changed, or what that shares; another node has come.
func topicsOf(node ids.ID, view *nodenet.View) []string {
	topics := []string{event.NodeTopic(node), event.NodesTopic}
	for _, instance := range view.Instances {
		topics = append(topics, event.InstanceTopic(instance.ID))
	}
	return topics
}

// await returns when something may have changed; more is false when the time is over.
func (s *Service) await(ctx context.Context, waiter *event.Waiter, over <-chan time.Time) (more bool, err error) {
	select {
	case <-waiter.C:
		return true, nil
	case <-over:
		return false, nil
	case <-s.Stopping: // the agent asks another process, and this one's stop waits for nobody
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// network reads the view as the caller, and so asks each time who that is.
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
