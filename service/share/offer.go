package share

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbshare "github.com/gpuaas/app-platform/ent/generated/db/controlplaneshare"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// OfferInput names the instance that is offered and the project that receives the offer.
type OfferInput struct {
	InstanceID     ids.ID
	ProjectID      ids.ID
	Reason         string
	IdempotencyKey string `json:"-"`
}

// Offer offers an instance that serves its tenant to another live project of the tenant. It requires
// control_plane.offer on the instance's project.
//
// Faults: NOT_FOUND (instance; project, at input.projectId), FORBIDDEN, FAILED_PRECONDITION at input.instanceId
// (it serves its project alone, or does not run), INVALID_ARGUMENT, CONFLICT naming the share that is open already,
// LIMIT_EXCEEDED beyond MaxOpen, IDEMPOTENCY_KEY_REUSED.
func (s *Service) Offer(ctx context.Context, in OfferInput) (*db.ControlPlaneShare, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if strings.TrimSpace(in.Reason) == "" {
		wrong.Bad("input.reason", "must state why: the other project reads it")
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *db.ControlPlaneShare
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "offerControlPlane"
		instance, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).Only(ctx)
		if db.IsNotFound(err) {
			return audit.Missing(t, action, authz.ControlPlaneOffer, in.InstanceID)
		}
		if err != nil {
			return fmt.Errorf("load instance %s: %w", in.InstanceID, err)
		}
		where := authz.Object{TenantID: instance.TenantID, ProjectID: instance.ProjectID, InstanceID: instance.ID,
			AppSlug: instance.AppSlug}
		if err := audit.Require(t, action, authz.ControlPlaneOffer, where, instance.ID); err != nil {
			return err
		}
		made := ids.New(ids.ControlPlane)
		repeated, err := idem.Claim(ctx, t, idem.Key{Verb: action, TenantID: instance.TenantID,
			ProjectID: instance.ProjectID, Value: in.IdempotencyKey, Input: in}, &made)
		if err != nil {
			return err
		}
		if repeated {
			if out, err = t.ControlPlaneShare.Get(ctx, made); err != nil {
				return fmt.Errorf("load share %s: %w", made, err)
			}
			return nil
		}
		out, err = offer(ctx, t, in, made)
		return err
	})
	return out, err
}

// offer locks the other project, then the instance, checks the rules and writes.
func offer(ctx context.Context, t *tx.Tx, in OfferInput, id ids.ID) (*db.ControlPlaneShare, error) {
	seen, err := t.Instance.Get(ctx, in.InstanceID)
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", in.InstanceID, err)
	}
	var project ids.ID
	err = t.QueryRow(ctx, `SELECT coalesce(platform.hold_offered($1, $2, $3), '')`, seen.ProjectID, seen.TenantID,
		in.ProjectID).Scan(&project)
	if err != nil {
		return nil, fmt.Errorf("lock project %s: %w", in.ProjectID, err)
	}
	if project == "" {
		return nil, fault.New(fault.NotFound, "the tenant has no project %s", in.ProjectID).At("input.projectId")
	}
	instance, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", in.InstanceID, err)
	}
	if err := offerable(ctx, t, instance, project); err != nil {
		return nil, err
	}
	row, err := t.ControlPlaneShare.Create().SetID(id).SetTenantID(instance.TenantID).SetProjectID(project).
		SetOwnerProjectID(instance.ProjectID).
		SetInstanceID(instance.ID).SetReason(in.Reason).SetOfferedBy(t.Actor.Name).SetCreatedAt(t.Now).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("offer instance %s: %w", instance.ID, err)
	}
	if err := event.Append(ctx, t, instance, told(t, row, "control plane offered to another project",
		in.Reason)); err != nil {
		return nil, err
	}
	return row, auditBoth(ctx, t, row, audit.Entry{Action: "offerControlPlane", Key: authz.ControlPlaneOffer,
		Reason: in.Reason, After: shown(row)})
}

// offerable checks the rules for an offer of a locked instance.
func offerable(ctx context.Context, t *tx.Tx, instance *db.Instance, project ids.ID) error {
	if project == instance.ProjectID {
		return fault.New(fault.InvalidArgument, "the instance belongs to this project itself").At("input.projectId")
	}
	if lifecycle.ControlPlaneScope(instance.ControlPlaneScope) != lifecycle.ControlPlaneTenant {
		return fault.New(fault.FailedPrecondition,
			"the control plane of instance %s serves only its own project: launch it with controlPlaneScope TENANT",
			instance.ID).At("input.instanceId")
	}
	if err := live(instance, "input.instanceId"); err != nil {
		return err
	}
	open, err := t.ControlPlaneShare.Query().Where(dbshare.InstanceID(instance.ID), dbshare.EndedAtIsNil()).All(ctx)
	if err != nil {
		return fmt.Errorf("find open shares of %s: %w", instance.ID, err)
	}
	for _, one := range open {
		if one.ProjectID == project {
			return fault.New(fault.Conflict, "share %s of this instance with the project is open already (%s)", one.ID,
				one.Status).At("input.projectId")
		}
	}
	if len(open) >= MaxOpen {
		return fault.New(fault.LimitExceeded, "a control plane is shared with at most %d projects",
			MaxOpen).At("input.projectId")
	}
	return nil
}
