package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// execAction is the verb's name in the audit.
const execAction = "execMember"

// Bounds of a command.
const (
	maxWords       = 256
	maxCommand     = 8 << 10 // bytes, all words together
	maxUser        = 128     // bytes of "user:group"
	maxScreen      = 1_000   // rows or columns
	leastReason    = 3
	commandWord    = "command"
	memberQuerySQL = `SELECT ` + rows.MemberColumns + ` FROM member WHERE id = $1`
)

// CommandInput is a command to run in a member.
type CommandInput struct {
	MemberID ids.ID
	Exec     tunnel.Exec
	// Reason is kept in the audit; it must be given.
	Reason string
}

// check notes what is wrong with a command.
func (in *CommandInput) check() error {
	wrong := &check.Input{}
	length := 0
	for _, word := range in.Exec.Command {
		length += len(word)
	}
	switch {
	case len(in.Exec.Command) == 0 || in.Exec.Command[0] == "":
		wrong.Bad(commandWord, "must name a program")
	case len(in.Exec.Command) > maxWords || length > maxCommand:
		wrong.Bad(commandWord, "may have at most %d arguments and %d bytes in all", maxWords, maxCommand)
	}
	if in.Exec.Rows > maxScreen || in.Exec.Cols > maxScreen {
		wrong.Bad("rows", "a terminal has at most %d rows and columns", maxScreen)
	}
	wrong.Text("user", in.Exec.User, 0, maxUser)
	wrong.Text("reason", in.Reason, leastReason, maxReason)
	return wrong.Err()
}

// maxReason bounds a reason, in characters.
const maxReason = 1_000

// MayCommand reports by its error whether the caller may run commands in a member now. Key: <family>.member.exec on the
// member's project. NOT_FOUND, FORBIDDEN.
func (s *Service) MayCommand(ctx context.Context, memberID ids.ID) error {
	var member *db.Member
	var instance *db.Instance
	actor, err := s.DB.Read(ctx, tx.Row(&member, rows.Member, memberQuerySQL, memberID),
		tx.Row(&instance, rows.Instance, `SELECT `+rows.InstanceColumns+` FROM instance
			WHERE id = (SELECT instance_id FROM member WHERE id = $1)`, memberID))
	if err != nil {
		return err
	}
	if member == nil || instance == nil {
		return fault.NoSuch()
	}
	key, err := authz.FamilyKey(instance.PermissionFamily, "member.exec")
	if err != nil {
		return err
	}
	return authz.RequireOn(actor, key, object(instance))
}

// Command accepts a command in a member, and returns where it runs and the request for the node's agent. It requires
// <family>.member.exec on the member's project, and the highest risk. The audit has the program's name and the reason,
// and neither its arguments nor what passes.
//
// Faults: INVALID_ARGUMENT (command, user, rows, reason), NOT_FOUND, FORBIDDEN, POLICY_DENIED (access: EXEC),
// FAILED_PRECONDITION when the member is on no node.
func (s *Service) Command(ctx context.Context, in CommandInput) (node, tenant ids.ID, open tunnel.Open, err error) {
	if err := in.check(); err != nil {
		return "", "", open, err
	}
	spec, err := json.Marshal(in.Exec)
	if err != nil {
		return "", "", open, err
	}
	entered, err := s.enter(ctx, in.MemberID, execAction, in.Reason,
		map[string]any{"program": in.Exec.Command[0], "user": in.Exec.User, "tty": in.Exec.TTY})
	if err != nil {
		return "", "", open, err
	}
	return *entered.member.NodeID, entered.instance.TenantID,
		tunnel.Open{Kind: tunnel.KindExec, MemberID: string(in.MemberID), Spec: spec}, nil
}

// entered is a member that the caller may work in, the caller, and when access was given.
type entered struct {
	member   *db.Member
	instance *db.Instance
	actor    *authz.Actor
	now      time.Time
}

// enter lets the caller work in a member, and notes it in the audit. The faults are those of Command.
func (s *Service) enter(ctx context.Context, id ids.ID, action, reason string, after map[string]any) (in entered,
	err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		member, instance, err := memberOf(ctx, t, action, authz.FamilyKeys("member.exec")[0], id)
		if err != nil {
			return err
		}
		key, err := mayEnter(ctx, t, action, instance, member.ID, "memberId")
		if err != nil {
			return err
		}
		if member.NodeID == nil || member.Status == lifecycle.MemberRemoved {
			return fault.New(fault.FailedPrecondition, "member %s is %s, and on no node", member.ID,
				member.Status).At("memberId")
		}
		in = entered{member: member, instance: instance, actor: t.Actor, now: t.Now}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: key, Object: object(instance), ObjectID: member.ID,
			Reason: reason, After: after})
	})
	return in, err
}

// mayEnter checks that the caller may work in the members of an instance: by <family>.member.exec, the highest risk and
// the policy for EXEC. A refusal is in the audit; at is the field that a refusal by policy names.
func mayEnter(ctx context.Context, t *tx.Tx, action string, of *db.Instance, objectID ids.ID, at string) (authz.Key,
	error) {
	key, err := authz.FamilyKey(of.PermissionFamily, "member.exec")
	if err != nil {
		return key, err
	}
	where := object(of)
	if err := audit.Require(t, action, key, where, objectID); err != nil {
		return key, err
	}
	if err := t.Actor.RequireRisk(lifecycle.RiskDestructive); err != nil {
		return key, audit.Refused(t, action, key, where, objectID, err)
	}
	return key, audit.Access(ctx, t, audit.Entry{Action: action, Key: key, Object: where, ObjectID: objectID},
		policy.AccessExec, at)
}

// memberOf loads a member with its instance.
func memberOf(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.Member, *db.Instance,
	error) {
	member, err := t.Member.Get(ctx, id)
	if db.IsNotFound(err) {
		return nil, nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load member %s: %w", id, err)
	}
	instance, err := t.Instance.Get(ctx, member.InstanceID)
	if err != nil {
		return nil, nil, fmt.Errorf("load instance %s: %w", member.InstanceID, err)
	}
	return member, instance, nil
}
