package node

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/health"
)

// maxAge is the most seconds that a finding may be old.
const maxAge = 86_400

// MemberFinding is a member that its node's agent found failed.
type MemberFinding struct {
	MemberID ids.ID
	Failure  lifecycle.MemberFailure
	// Message describes it for a person; empty for the failure's own text.
	Message string
	// AgeSeconds is how long ago it was seen.
	AgeSeconds int
}

func checkFindings(in *check.Input, findings []MemberFinding) {
	whole(in, "input.memberFindings", len(findings), 0, maxKills)
	for i, one := range findings {
		path := fmt.Sprintf("input.memberFindings.%d", i)
		if one.Failure.Rule().FoundBy != lifecycle.FoundByAgent {
			in.Bad(path+".failure", "%s is not a failure that a node reports", one.Failure)
		}
		in.Text(path+".message", one.Message, 0, 500)
		whole(in, path+".ageSeconds", one.AgeSeconds, 0, maxAge)
	}
}

// fail sets members that are at rest, see health.Fail, to FAILED, each in a transaction of its own. The agent repeats a
// finding for as long as it holds, so that one that comes during an operation counts once that has ended.
func (s *Service) fail(ctx context.Context, agent *authz.Actor, findings []MemberFinding) error {
	serving, err := s.serving(ctx, agent, findings)
	if err != nil {
		return err
	}
	for _, one := range findings {
		if !serving[one.MemberID] {
			continue
		}
		err := s.DB.As(ctx, agent, func(ctx context.Context, t *tx.Tx) error {
			_, err := health.Fail(ctx, t, health.Finding{MemberID: one.MemberID, NodeID: agent.NodeID,
				Cause: one.Failure, Message: one.Message, Age: time.Duration(one.AgeSeconds) * time.Second})
			return err
		})
		if err != nil {
			return fmt.Errorf("fail member %s: %w", one.MemberID, err)
		}
	}
	return nil
}

// serving reads which of the found members are the node's and in service: the others need no lock.
func (s *Service) serving(ctx context.Context, agent *authz.Actor, findings []MemberFinding) (map[ids.ID]bool, error) {
	if len(findings) == 0 {
		return nil, nil
	}
	wanted := make([]ids.ID, len(findings))
	for i, one := range findings {
		wanted[i] = one.MemberID
	}
	serving := make(map[ids.ID]bool)
	err := s.DB.As(ctx, agent, func(ctx context.Context, t *tx.Tx) error {
		found, err := t.Query(ctx, `SELECT id FROM member WHERE id = ANY ($1) AND node_id = $2
			AND status IN ('ACTIVE', 'DRAINING', 'DRAINED')`, wanted, agent.NodeID)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
		clear(serving)
		for _, id := range list {
			serving[id] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load the members that were found: %w", err)
	}
	return serving, nil
}
