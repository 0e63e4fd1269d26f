package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// RunInput describes a new task.
type RunInput struct {
	MemberID       ids.ID
	Kind           lifecycle.NodeTaskKind
	Spec           json.RawMessage
	TimeoutSeconds int
	IdempotencyKey string
}

// Run requests a task of the node of a member. A repeat with the same key for the same member returns
// the same task. It requires task.run on the member's instance; with task.inspect alone the task may only read a
// process's state or run a command that the instance's pinned manifest names (FORBIDDEN at input.spec for any other).
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when the
// member is removed or on no node, or the calling operation has ended, LIMIT_EXCEEDED when too many of its tasks are
// open, IDEMPOTENCY_KEY_REUSED; at input.spec.digest NOT_FOUND, ARTIFACT_QUARANTINED or POLICY_DENIED of an artifact
// that the member's instance may not have.
//
// A task that an adapter requests for one of the platform's health polls is not audited: see polls.
func (s *Service) Run(ctx context.Context, in RunInput) (*db.NodeTask, error) {
	spec, err := in.check()
	if err != nil {
		return nil, err
	}
	var out *db.NodeTask
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		rules, err := in.rules(ctx, t, spec)
		if err != nil {
			return err
		}
		if err := open(ctx, t, operationOf(t.Actor)); err != nil {
			return err
		}
		member, key, err := runnable(ctx, t, in.MemberID, spec)
		if err != nil {
			return err
		}
		if err := bound(ctx, t, member, nodetask.SecretRefs(spec)); err != nil {
			return err
		}
		row, made, err := create(ctx, t, draft{
			member: member, spec: spec, timeoutSeconds: in.TimeoutSeconds, operationID: operationOf(t.Actor),
			key: in.IdempotencyKey,
		})
		out = row
		if err != nil || !made {
			return err
		}
		if err := supplied(ctx, t, rules, row, spec); err != nil {
			return err
		}
		if polled, err := polls(ctx, t, member, spec); err != nil || polled {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{
			Action: "runNodeTask", Key: key, Object: object(row), ObjectID: row.ID,
			After: map[string]any{"kind": row.Kind, "member": row.MemberID, "node": row.NodeID,
				"timeoutSeconds": row.TimeoutSeconds},
		})
	})
	return out, err
}

// check refuses input that is wrong by itself and reads the specification.
func (in *RunInput) check() (nodetask.Spec, error) {
	spec, err := nodetask.Parse(in.Kind, in.Spec)
	if refused, ok := fault.As(err); ok {
		return nil, fault.New(refused.Code, "%s", refused.Message).With(fault.Prefixed("input", refused.Reasons)...)
	}
	if err != nil {
		return nil, err
	}
	if in.TimeoutSeconds < nodetask.MinTimeout || in.TimeoutSeconds > nodetask.MaxTimeout {
		return nil, fault.New(fault.InvalidArgument, "the timeout must be %d to %d seconds", nodetask.MinTimeout,
			nodetask.MaxTimeout).
			At("input.timeoutSeconds")
	}
	return spec, checkKey(in.IdempotencyKey)
}

const action = "runNodeTask"

// maxKey is the longest idempotency key, in bytes, as for every verb.
const maxKey = 128

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fault.New(fault.InvalidArgument, "the idempotency key must have 1 to %d characters",
			maxKey).At("input.idempotencyKey")
	}
	for _, r := range key {
		if r < 0x21 || r > 0x7e {
			return fault.New(fault.InvalidArgument,
				"the idempotency key must be printable ASCII without spaces").At("input.idempotencyKey")
		}
	}
	return nil
}

// runnable loads the member that a task is for and locks it against removal until the commit.
func runnable(ctx context.Context, t *tx.Tx, id ids.ID, spec nodetask.Spec) (*db.Member, authz.Key, error) {
	if t.Actor.Kind == authz.KindNode || t.Actor.Kind == authz.KindEnrolment { // they see no members at all
		return nil, 0, audit.Require(t, action, authz.TaskRun, authz.Object{}, id)
	}
	member, err := t.Member.Query().Where(dbmember.ID(id)).ForShare().Only(ctx)
	if db.IsNotFound(err) {
		return nil, 0, audit.Missing(t, action, authz.TaskRun, id)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("load member %s: %w", id, err)
	}
	where := authz.Object{TenantID: member.TenantID, ProjectID: member.ProjectID, InstanceID: member.InstanceID}
	if authz.RequireOn(t.Actor, authz.TaskRun, where) != nil && authz.RequireOn(t.Actor, authz.TaskInspect,
		where) == nil {
		return member, authz.TaskInspect, looksOnly(ctx, t, member, spec, where)
	}
	return member, authz.TaskRun, audit.Require(t, action, authz.TaskRun, where, id)
}

// open keeps the calling operation from ending before the task is stored, and refuses one that has ended since its
// token was authenticated. It comes before the member's lock, as everywhere.
func open(ctx context.Context, t *tx.Tx, operation ids.ID) error {
	if operation == "" {
		return nil
	}
	var runs bool
	if err := t.QueryRow(ctx, `SELECT coalesce(platform.hold_operation($1), false)`, operation).
		Scan(&runs); err != nil {
		return fmt.Errorf("lock operation %s: %w", operation, err)
	}
	if !runs {
		return fault.New(fault.FailedPrecondition, "operation %s has ended: no more tasks run for it", operation)
	}
	return nil
}

// operationOf is the operation that an actor speaks for; empty when it speaks for none.
func operationOf(actor *authz.Actor) ids.ID {
	if actor.Kind == authz.KindOperation && actor.ID.Is(ids.Operation) {
		return actor.ID
	}
	return ""
}

// draft is a task before it is accepted.
type draft struct {
	member         *db.Member
	spec           nodetask.Spec
	timeoutSeconds int
	operationID    ids.ID // empty when it belongs to none
	key            string
}

const insert = `INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind,
	spec, spec_digest,
	fence, state, timeout_seconds, idempotency_key, created_at, correlation_id, traceparent, app_slug)
	VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), $8, $9, $10, 1, $11, $12, $13, $14,
		coalesce((SELECT correlation_id FROM operation WHERE id = $7), $15), $16,
		coalesce((SELECT app_slug FROM instance WHERE id = $4), ''))
	ON CONFLICT (member_id, idempotency_key) DO NOTHING RETURNING ` + rows.NodeTaskColumns

// create stores a task and wakes the node after the commit; made is false when the member already
// had this task under the same key. The member's row is locked.
func create(ctx context.Context, t *tx.Tx, d draft) (row *db.NodeTask, made bool, err error) {
	spec, err := nodetask.Encode(d.spec)
	if err != nil {
		return nil, false, err
	}
	digest := digestOf(nodetask.KindOf(d.spec), d.timeoutSeconds, spec)
	member := d.member
	if member.NodeID == nil || member.Status == lifecycle.MemberRemoved {
		return known(ctx, t, d, digest)
	}
	row, err = one(ctx, t, insert, ids.New(ids.NodeTask), member.TenantID, member.ProjectID,
		member.InstanceID, member.ID, *member.NodeID,
		d.operationID, nodetask.KindOf(d.spec), spec, digest, lifecycle.TaskPending, d.timeoutSeconds, d.key, t.Now,
		authz.Request(ctx).CorrelationID, telemetry.Traceparent(ctx))
	if err != nil {
		return nil, false, fmt.Errorf("create a node task: %w", err)
	}
	if row == nil {
		return known(ctx, t, d, digest)
	}
	if err := room(ctx, t, member); err != nil {
		return nil, false, err
	}
	t.Wake(event.NodeTopic(row.NodeID), event.TaskTopic(row.ID))
	return row, true, nil
}

// known is the task that the member has under the key, if it is the same one.
func known(ctx context.Context, t *tx.Tx, d draft, digest []byte) (*db.NodeTask, bool, error) {
	row, err := one(ctx, t, `SELECT `+rows.NodeTaskColumns+` FROM node_task WHERE member_id = $1
		AND idempotency_key = $2`,
		d.member.ID, d.key)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("find a node task: %w", err)
	case row == nil && d.member.NodeID == nil:
		return nil, false, fault.New(fault.FailedPrecondition, "member %s is on no node", d.member.ID).
			At("input.memberId")
	case row == nil:
		return nil, false, fault.New(fault.FailedPrecondition, "member %s is removed", d.member.ID).At("input.memberId")
	case !bytes.Equal(row.SpecDigest, digest):
		return nil, false, fault.New(fault.IdempotencyKeyReused,
			"the idempotency key was used for this member with another task").
			At("input.idempotencyKey")
	}
	return row, false, nil
}

// room refuses a task that exceeds MaxOpenOfMember.
func room(ctx context.Context, t *tx.Tx, member *db.Member) error {
	var open int
	err := t.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM node_task WHERE node_id = $1 AND member_id = $2
		AND ended_at IS NULL LIMIT $3) o`,
		*member.NodeID, member.ID, MaxOpenOfMember+1).Scan(&open)
	if err != nil {
		return fmt.Errorf("count open node tasks: %w", err)
	}
	if open > MaxOpenOfMember {
		return fault.New(fault.LimitExceeded, "member %s has %d open tasks, which is the maximum", member.ID,
			MaxOpenOfMember).
			At("input.memberId").Retry(true)
	}
	return nil
}

// digestOf returns a digest that distinguishes tasks; spec is canonical.
func digestOf(kind lifecycle.NodeTaskKind, timeoutSeconds int, spec []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", kind, timeoutSeconds, spec))
	return sum[:]
}
