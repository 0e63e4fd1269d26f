package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/repair"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// setRepair names the verb in the audit.
const setRepair = "setRepairPolicy"

// Repair returns the instance's policy of repair.
func (v *View) Repair() (*repair.Policy, error) {
	policy, err := repair.Of(v.Instance.Repair)
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", v.ID, err)
	}
	return &policy, nil
}

// RepairInput is how an instance is to be repaired.
type RepairInput struct {
	InstanceID        ids.ID
	Mode              repair.Mode
	Budget            int
	BackOffSeconds    int
	GraceSeconds      *int // nil for ever
	HourlyLimitMicros *int // nil for no bound
	Reason            string
}

func (in RepairInput) policy() repair.Policy {
	return repair.Policy{Mode: in.Mode, Budget: in.Budget, BackOffSeconds: in.BackOffSeconds,
		GraceSeconds:      in.GraceSeconds,
		HourlyLimitMicros: in.HourlyLimitMicros}
}

// SetRepair sets who repairs an instance whose members are lost, how often, and when it is given up. A repair that had
// stopped is decided again. It requires <family>.instance.update, and to have members replaced by the platform
// <family>.member.recover and <family>.member.replace and allocation.create, which it then uses in the caller's place.
// Faults: NOT_FOUND, FORBIDDEN, INVALID_ARGUMENT at the fields, FAILED_PRECONDITION when the instance was torn down.
func (s *Service) SetRepair(ctx context.Context, in RepairInput) (out *View, err error) {
	if err := in.policy().Check(); err != nil {
		return nil, err
	}
	if err := checkReason(in.Reason); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = in.set(ctx, t)
		return err
	})
	return out, err
}

func (in RepairInput) set(ctx context.Context, t *tx.Tx) (*View, error) {
	seen, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, setRepair, authz.FamilyKeys("instance.update")[0], in.InstanceID)
	}
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", in.InstanceID, err)
	}
	key, err := in.require(t, seen)
	if err != nil {
		return nil, err
	}
	row, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", in.InstanceID, err)
	}
	if row.ReleasedAt != nil {
		return nil, fault.New(fault.FailedPrecondition, "instance %s was torn down", row.ID).At("input.instanceId")
	}
	before, err := repair.Of(row.Repair)
	if err != nil {
		return nil, err
	}
	if row.Repair, err = json.Marshal(in.policy()); err != nil {
		return nil, fmt.Errorf("encode a repair policy: %w", err)
	}
	t.Last().Queue(`UPDATE instance SET repair = $2, repair_stopped = '', updated_at = $3 WHERE id = $1`, row.ID,
		[]byte(row.Repair), t.Now)
	row.RepairStopped, row.UpdatedAt = "", t.Now
	t.Wake(event.InstanceTopic(row.ID), event.ProjectTopic(row.ProjectID), event.FailedTopic)
	return &View{Instance: row}, audit.Write(ctx, t, audit.Entry{Action: setRepair, Key: key, Object: object(row),
		ObjectID: row.ID, Reason: in.Reason, Before: before, After: in.policy()})
}

// require refuses a caller without the keys; it returns that of the verb.
func (in RepairInput) require(t *tx.Tx, row *db.Instance) (authz.Key, error) {
	suffixes := []string{"instance.update"}
	if in.Mode == repair.Automatic {
		suffixes = append(suffixes, "member.recover", "member.replace")
	}
	var first authz.Key
	for _, suffix := range suffixes {
		key, err := authz.FamilyKey(row.PermissionFamily, suffix)
		if err == nil {
			err = audit.Require(t, setRepair, key, object(row), row.ID)
		}
		if err != nil {
			return first, err
		}
		if suffix == suffixes[0] {
			first = key
		}
	}
	if in.Mode != repair.Automatic {
		return first, nil
	}
	project := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
	return first, audit.Require(t, setRepair, authz.AllocationCreate, project, row.ProjectID)
}
