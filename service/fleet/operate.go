// Package fleet holds the operators' verbs on the platform's nodes: cordon, drain, retire and delete one, see who lives
// on it, and see all of them at once.
package fleet

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Service holds the verbs.
type Service struct{ DB *tx.DB }

// OperateInput names a node and says why it is changed.
type OperateInput struct {
	NodeID ids.ID
	Reason string
}

// set is an update of a node's row, below its id: the columns, and their values from $2 on.
type set struct {
	columns string
	values  []any
}

// operate is what the verbs of operators on one node have in common: it requires node.operate on the platform, locks
// the node, has the rule decide what is written, and audits it. A node that was deleted is NOT_FOUND.
func (s *Service) operate(ctx context.Context, action string, in OperateInput,
	rule func(ctx context.Context, t *tx.Tx, node *db.ComputeNode) (set, error)) (*db.ComputeNode, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *db.ComputeNode
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		node, err := locked(ctx, t, action, in.NodeID)
		if err != nil {
			return err
		}
		write, err := rule(ctx, t, node)
		if err != nil {
			return err
		}
		out, err = one(ctx, t, `UPDATE compute_node
			SET `+write.columns+` WHERE id = $1 RETURNING `+rows.ComputeNodeColumns,
			append([]any{node.ID}, write.values...)...)
		if err != nil {
			return fmt.Errorf("%s %s: %w", action, node.ID, err)
		}
		t.Wake(event.NodeTopic(node.ID))
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.NodeOperate, Object: authz.Object{},
			ObjectID: node.ID,
			Reason:   in.Reason, Before: standing(node), After: standing(out)})
	})
	return out, err
}

// locked loads the node, requires the key, and locks it: a caller without the key waits for no lock.
func locked(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*db.ComputeNode, error) {
	const known = `SELECT ` + rows.ComputeNodeColumns + ` FROM compute_node WHERE id = $1 AND deleted_at IS NULL`
	seen, err := one(ctx, t, known, id)
	if err != nil {
		return nil, fmt.Errorf("load node %s: %w", id, err)
	}
	if seen == nil {
		return nil, audit.Missing(t, action, authz.NodeOperate, id)
	}
	if err := audit.Require(t, action, authz.NodeOperate, authz.Object{}, id); err != nil {
		return nil, err
	}
	row, err := one(ctx, t, known+` FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("lock node %s: %w", id, err)
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	return row, nil
}

// standing is the part of a node that operators change, for the audit.
func standing(node *db.ComputeNode) map[string]any {
	out := map[string]any{"name": node.Name, "status": node.Status, "cordoned": node.Cordoned}
	if node.Drain != nil {
		out["drain"] = map[string]any{"ending": node.Drain.Ending, "force": node.Drain.Force,
			"deadlineSeconds": node.Drain.DeadlineSeconds}
	}
	if node.Lost {
		out["lost"] = true
	}
	if node.DeletedAt != nil {
		out["deleted"] = true
	}
	return out
}

// live refuses a node that was taken out for good.
func live(node *db.ComputeNode) error {
	if node.Status == lifecycle.NodeRetired {
		return fault.New(fault.FailedPrecondition, "node %q is retired, which cannot be undone",
			node.Name).At("input.nodeId")
	}
	return nil
}

// one reads at most one node; nil when no row matches.
func one(ctx context.Context, t *tx.Tx, sql string, args ...any) (*db.ComputeNode, error) {
	found, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	collected, err := pgx.CollectRows(found, rows.ComputeNode)
	if err != nil || len(collected) == 0 {
		return nil, err
	}
	return collected[0], nil
}
