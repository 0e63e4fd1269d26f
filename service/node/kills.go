package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxKills is how many members a heartbeat may report kills of.
const maxKills = 1_000

// MemoryKills is how many processes of a member the node's kernel has killed because the member had no memory left.
type MemoryKills struct {
	MemberID ids.ID
	// Since names the start of the member that the count began with; Kills never falls while it stays the same.
	Since string
	Kills int
}

func checkKills(in *check.Input, kills []MemoryKills) {
	whole(in, "input.memoryKills", len(kills), 0, maxKills)
	for i, one := range kills {
		path := fmt.Sprintf("input.memoryKills.%d", i)
		in.Text(path+".since", one.Since, 1, 64)
		whole(in, path+".kills", one.Kills, 1, 1<<31-1)
	}
}

// tellKills tells of kills that are new. The same report again adds nothing.
func (s *Service) tellKills(ctx context.Context, agent *authz.Actor, kills []MemoryKills) error {
	for _, one := range kills {
		err := s.DB.As(ctx, agent, func(ctx context.Context, t *tx.Tx) error { return one.tell(ctx, t) })
		if err != nil {
			return fmt.Errorf("memory kills of %s: %w", one.MemberID, err)
		}
	}
	return nil
}

// tell ignores members that are not on the calling node, and those whose instance is gone.
func (k MemoryKills) tell(ctx context.Context, t *tx.Tx) error {
	var of ids.ID
	var component string
	var ordinal int
	err := t.QueryRow(ctx, `SELECT instance_id, component_key, ordinal FROM member WHERE id = $1 AND node_id = $2`,
		k.MemberID, t.Actor.NodeID).
		Scan((*string)(&of), &component, &ordinal)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	instance, err := t.Instance.Query().Where(dbinstance.ID(of)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var before int
	if err := t.QueryRow(ctx, `SELECT coalesce(max((payload->>'kills')::int), 0) FROM app_instance_event WHERE instance_id = $1 AND member_id = $2
		AND type = $3 AND payload->>'since' = $4`, of, k.MemberID, string(lifecycle.EventMemberOutOfMemory), k.Since).Scan(&before); err != nil {
		return err
	}
	if k.Kills <= before {
		return nil
	}
	return event.Append(ctx, t, instance, event.Draft{
		Type: lifecycle.EventMemberOutOfMemory, MemberID: k.MemberID,
		Message: fmt.Sprintf("%s %d had no memory left: the kernel of its node killed %d of its processes", component,
			ordinal, k.Kills-before),
		Payload: map[string]any{"since": k.Since, "kills": k.Kills, "killed": k.Kills - before},
	})
}
