// Package share holds the verbs on shared control planes: offer, consent, withdrawal, detachment. The owner of an
// instance that serves its tenant offers it to another project, which accepts or declines; either side ends it.
// With a share, people of the other project may ask the app only for what their keys in their own project allow.
package share

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbshare "github.com/gpuaas/app-platform/ent/generated/db/controlplaneshare"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// MaxOpen is how many projects a control plane may be offered to or attached to at once.
const MaxOpen = 100

// Service holds the verbs.
type Service struct{ DB *tx.DB }

// Input names a share and says why.
type Input struct {
	ShareID ids.ID
	Reason  string
}

// move is a change of a share that exists: the end that may make it, and the state that it leads to.
type move struct {
	action string
	key    authz.Key
	// by returns the end that makes the move: the project where the key is required.
	by func(*db.ControlPlaneShare) ids.ID
	// to is the state that it leads to.
	to func(*db.ControlPlaneShare) lifecycle.ShareStatus
	// policed reports whether the policy of the other project applies; it is read before anything is locked.
	policed bool
	// rule is checked once the rows are locked; nil for none. The policy is nil unless policed.
	rule func(row *db.ControlPlaneShare, instance *db.Instance, left *policy.Effective) error
	// word is the message on the timeline.
	word string
}

// owner and other are the ends of a share.
func owner(row *db.ControlPlaneShare) ids.ID { return row.OwnerProjectID }
func other(row *db.ControlPlaneShare) ids.ID { return row.ProjectID }

// objectAt is a share as an object of authorisation at one of its ends.
func objectAt(row *db.ControlPlaneShare, project ids.ID) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: project, InstanceID: row.InstanceID}
}

// carry carries a move out: load, authorise, lock instance and share, recheck, write.
func (s *Service) carry(ctx context.Context, in Input, m move) (*db.ControlPlaneShare, error) {
	wrong := &check.Input{}
	wrong.Reason("reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *db.ControlPlaneShare
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := t.ControlPlaneShare.Query().Where(dbshare.ID(in.ShareID)).Only(ctx)
		if db.IsNotFound(err) {
			return audit.Missing(t, m.action, m.key, in.ShareID)
		}
		if err != nil {
			return fmt.Errorf("load share %s: %w", in.ShareID, err)
		}
		if err := audit.Require(t, m.action, m.key, objectAt(row, m.by(row)), row.ID); err != nil {
			return err
		}
		var left *policy.Effective
		if m.policed {
			if left, err = overlay.Load(ctx, t, row.TenantID, row.ProjectID); err != nil {
				return err
			}
		}
		instance, err := m.hold(ctx, t, row)
		if err != nil {
			return err
		}
		if row, err = t.ControlPlaneShare.Query().Where(dbshare.ID(row.ID)).ForUpdate().Only(ctx); err != nil {
			return fmt.Errorf("lock share %s: %w", in.ShareID, err)
		}
		if err := m.ask(t, row, instance, left); err != nil {
			return err
		}
		out, err = m.write(ctx, t, row, instance, in.Reason)
		return err
	})
	return out, err
}

// hold locks the instance, which is locked before the share.
func (m move) hold(ctx context.Context, t *tx.Tx, row *db.ControlPlaneShare) (*db.Instance, error) {
	found, err := t.Query(ctx, `SELECT `+rows.InstanceColumns+` FROM platform.hold_shared($1) AS instance`, row.ID)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", row.InstanceID, err)
	}
	instance, err := pgx.CollectExactlyOneRow(found, rows.Instance)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, audit.Missing(t, m.action, m.key, row.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", row.InstanceID, err)
	}
	return instance, nil
}

// ask checks the move by the state table and its rule.
func (m move) ask(t *tx.Tx, row *db.ControlPlaneShare, instance *db.Instance, left *policy.Effective) error {
	if err := row.Status.CanMove(m.to(row)); err != nil {
		return fault.From(err).At("shareId")
	}
	if m.rule == nil {
		return nil
	}
	return audit.Refused(t, m.action, m.key, objectAt(row, m.by(row)), row.ID, m.rule(row, instance, left))
}

// write writes share, event and audit.
func (m move) write(ctx context.Context, t *tx.Tx, row *db.ControlPlaneShare, instance *db.Instance,
	reason string) (*db.ControlPlaneShare, error) {
	before, to := row.Status, m.to(row)
	row.Status = to
	if to == lifecycle.ShareAttached || to == lifecycle.ShareDeclined {
		row.AnsweredBy, row.AnsweredAt = t.Actor.Name, &t.Now
	}
	if to.Terminal() {
		row.EndedBy, row.EndReason, row.EndedAt = t.Actor.Name, reason, &t.Now
	}
	_, err := t.Exec(ctx, `UPDATE control_plane_share SET status = $2, answered_by = $3, answered_at = $4,
		ended_by = $5,
		end_reason = $6,
		ended_at = $7 WHERE id = $1`, row.ID, to, row.AnsweredBy, row.AnsweredAt, row.EndedBy, row.EndReason,
		row.EndedAt)
	if err != nil {
		return nil, fmt.Errorf("change share %s: %w", row.ID, err)
	}
	if err := event.AppendShared(ctx, t, row.ID, instance, told(t, row, m.word, reason)); err != nil {
		return nil, err
	}
	if to == lifecycle.ShareAttached {
		if err := wakeGuests(ctx, t, row.ProjectID); err != nil {
			return nil, err
		}
	}
	return row, auditBoth(ctx, t, row, audit.Entry{Action: m.action, Key: m.key, Reason: reason,
		Before: map[string]any{"status": before}, After: shown(row)})
}

// wakeGuests wakes the nodes of the attached project's instances, whose members reach the control plane from now on.
// From then on they also wait for changes of the control plane's own instance, as for every one in their network.
func wakeGuests(ctx context.Context, t *tx.Tx, project ids.ID) error {
	found, err := t.Query(ctx, `SELECT id FROM instance WHERE project_id = $1 AND released_at IS NULL`, project)
	if err != nil {
		return fmt.Errorf("find the instances of %s: %w", project, err)
	}
	var guest ids.ID
	_, err = pgx.ForEachRow(found, []any{&guest}, func() error {
		t.Wake(event.InstanceTopic(guest))
		return nil
	})
	return err
}

// told returns the event of a share for the instance's timeline.
func told(t *tx.Tx, row *db.ControlPlaneShare, word, reason string) event.Draft {
	return event.Draft{
		Type: lifecycle.EventType("apps.instance.control_plane_" + strings.ToLower(string(row.Status))), Message: word,
		CorrelationID: t.Request.CorrelationID,
		Payload:       map[string]any{"share": row.ID, "project": row.ProjectID, "by": t.Actor.Name, "reason": reason},
	}
}

// auditBoth writes the entry in the scope of both ends: what either does concerns the other.
func auditBoth(ctx context.Context, t *tx.Tx, row *db.ControlPlaneShare, entry audit.Entry) error {
	entry.ObjectID = row.ID
	for _, project := range []ids.ID{row.OwnerProjectID, row.ProjectID} {
		entry.Object = objectAt(row, project)
		if err := audit.Write(ctx, t, entry); err != nil {
			return err
		}
	}
	return nil
}

// shown is what the audit keeps of a share.
func shown(row *db.ControlPlaneShare) map[string]any {
	return map[string]any{"status": row.Status, "instance": row.InstanceID, "ownerProject": row.OwnerProjectID,
		"project": row.ProjectID}
}

// live refuses a control plane that neither starts nor runs, at the path.
func live(instance *db.Instance, path string) error {
	if instance.ReleasedAt == nil && (instance.Status == lifecycle.InstanceRunning ||
		instance.Status == lifecycle.InstanceStarting) {
		return nil
	}
	return fault.New(fault.FailedPrecondition, "instance %s is %s: only one that is starting or running is shared",
		instance.ID, instance.Status).At(path)
}
