package instance

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/idem"
	"github.com/gpuaas/app-platform/service/operation"
)

// DecommissionInput names what is torn down.
type DecommissionInput struct {
	InstanceID      ids.ID
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	PlanHash        string
	DeadlineSeconds int
	Reason          string
	IdempotencyKey  string
}

// Decommission accepts the teardown of an instance. A launch that is still under way is superseded:
// it ends as canceled, and the teardown takes over whatever it had begun. It asks for
// <family>.instance.delete.
//
// Faults: NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when nothing of it is left, CONFLICT naming
// another operation under way, INVALID_ARGUMENT, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Decommission(ctx context.Context, in DecommissionInput) (*Started, error) {
	if err := checkReason(in.Reason); err != nil {
		return nil, err
	}
	if err := operation.CheckDeadline(in.DeadlineSeconds); err != nil {
		return nil, err
	}
	var out *Started
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := s.lock(ctx, t, "decommissionInstance", "instance.delete", in.InstanceID)
		if err != nil {
			return err
		}
		made := made{Instance: row.ID, Operation: ids.New(ids.Operation)}
		repeated, err := idem.Claim(ctx, t, idem.Key{
			Verb: "decommissionInstance", TenantID: row.TenantID, ProjectID: row.ProjectID, Value: in.IdempotencyKey, Input: in,
		}, &made)
		if err != nil {
			return err
		}
		if repeated {
			out, err = s.started(ctx, t, made)
			return err
		}
		op, err := decommission(ctx, t, row, in, made.Operation)
		if err != nil {
			return err
		}
		out = &Started{Instance: &View{Instance: row}, Operation: &operation.View{Operation: op}}
		return nil
	})
	return out, err
}

// decommission stops the locked, authorised instance and audits it.
func decommission(ctx context.Context, t *tx.Tx, row *db.Instance, in DecommissionInput, id ids.ID) (*db.Operation, error) {
	if row.ReleasedAt != nil {
		return nil, fault.New(fault.FailedPrecondition, "instance %s was torn down at %s", row.ID, row.ReleasedAt.Format("2006-01-02 15:04:05Z")).
			At("input.instanceId")
	}
	before := row.Status
	op, err := operation.Teardown(ctx, t, row, operation.Draft{ID: id, DeadlineSeconds: in.DeadlineSeconds, Reason: in.Reason})
	if err != nil {
		return nil, err
	}
	key, err := authz.FamilyKey(row.PermissionFamily, "instance.delete")
	if err != nil {
		return nil, err
	}
	err = audit.Write(ctx, t, audit.Entry{
		Action: "decommissionInstance", Key: key, Object: object(row), ObjectID: row.ID, Reason: in.Reason,
		Before: map[string]any{"status": before}, After: map[string]any{"status": row.Status, "operation": op.ID},
	})
	if err != nil {
		return nil, fmt.Errorf("decommission %s: %w", row.ID, err)
	}
	return op, nil
}
