package health

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxLossCode bounds the code of an instance that its adapter reports lost, in bytes.
const maxLossCode = 64

// ReportedFailed are the members that the adapter reports failed.
func ReportedFailed(seen []adapter.MemberObservation) (list []ids.ID) {
	for _, one := range seen[:min(len(seen), adapter.MaxMembers)] {
		if one.Status == adapter.MemberFailed {
			list = append(list, ids.ID(one.ID))
		}
	}
	return list
}

// FailReported fails the members at rest that the adapter reports failed.
func FailReported(ctx context.Context, t *tx.Tx, instance *db.Instance, seen []adapter.MemberObservation) error {
	for _, one := range seen[:min(len(seen), adapter.MaxMembers)] {
		if one.Status != adapter.MemberFailed {
			continue
		}
		mine, err := t.Member.Query().Where(dbmember.ID(ids.ID(one.ID)), dbmember.InstanceID(instance.ID)).Exist(ctx)
		if err != nil {
			return fmt.Errorf("find member %s: %w", one.ID, err)
		}
		if !mine {
			continue
		}
		if _, err := Fail(ctx, t, Finding{MemberID: ids.ID(one.ID), Cause: lifecycle.FailureReported,
			Message: operation.Clip(one.Message, maxText)}); err != nil {
			return err
		}
	}
	return nil
}

// LostForGood is the failure of an instance that its adapter reports lost.
func LostForGood(lost *adapter.OperationError) operation.Failure {
	owner := string(lost.Owner)
	if !lost.Owner.Valid() {
		owner = string(adapter.OwnerAdapter)
	}
	code := lost.Code
	if code == "" || len(code) > maxLossCode {
		code = "INSTANCE_LOST"
	}
	return operation.Failure{Code: operation.Clip(code, maxLossCode), Message: operation.Clip(lost.Message, maxText),
		Owner: owner}
}
