package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbadapter "github.com/gpuaas/app-platform/ent/generated/db/adapter"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbnode "github.com/gpuaas/app-platform/ent/generated/db/computenode"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/contract"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/kit/posix"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxActionInput bounds an action's input, in bytes.
const maxActionInput = 256 << 10

// ActionInput names an action and gives its input.
type ActionInput struct {
	InstanceID ids.ID
	Action     string
	Input      json.RawMessage
	// ProjectID is the caller's project, when that is attached to the instance's shared control plane; empty for the
	// instance's own.
	ProjectID      ids.ID `json:",omitempty"`
	Reason         string `json:",omitempty"` // kept in the audit
	IdempotencyKey string
}

// ActionOutput is the adapter's answer.
type ActionOutput struct {
	Action        string
	Output        json.RawMessage
	CorrelationID string
}

// answered is what an idempotency key stores of an action: nothing until the adapter has answered.
type answered struct {
	Output json.RawMessage `json:"output,omitempty"`
}

// preparedAction is an accepted action on its way out.
type preparedAction struct {
	call contract.Action
	spec manifest.Action
	key  authz.Key
	// where is the project that acts: the key is required there. share attaches that project to the instance; empty for
	// the instance's own.
	where  authz.Object
	share  ids.ID
	actor  *authz.Actor
	claim  idem.Key
	answer answered
}

// InvokeAction passes an action that the manifest declares to the adapter. It requires the key that the action
// declares, on the instance's project or on the attached one that calls. The call to the adapter lies between two
// transactions: one accepts and audits it, one stores the answer; a repeat with the same key gets the stored answer, or
// calls the adapter again under the same key if none was stored. Answers of actions that only read are not stored, and
// the audit has one entry for readsNotedFor of them, unless a reason is given.
//
// Faults: NOT_FOUND (instance, also when the project is not attached to it; action), FORBIDDEN, FAILED_PRECONDITION
// when the instance does not run, INVALID_ARGUMENT with the input's path, ADAPTER_REJECTED, ADAPTER_UNAVAILABLE,
// ADAPTER_INVALID, IDEMPOTENCY_KEY_REUSED.
func (s *Service) InvokeAction(ctx context.Context, in ActionInput) (*ActionOutput, error) {
	if len(in.Input) > maxActionInput {
		return nil, fault.New(fault.InvalidArgument, "the input may have at most %d bytes", maxActionInput).At("input")
	}
	wrong := &check.Input{}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var prepared *preparedAction
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		prepared, err = s.acceptAction(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &ActionOutput{Action: in.Action, Output: prepared.answer.Output, CorrelationID: prepared.call.CorrelationID}
	if out.Output != nil {
		return out, nil
	}
	if err := s.prepareShared(ctx, prepared, in); err != nil {
		return nil, err
	}
	out.Output, err = s.callAdapter(ctx, prepared)
	if err != nil {
		return nil, s.noteFailure(ctx, prepared, in, err)
	}
	if prepared.spec.Risk == "read" { // a repeat may read again
		return out, nil
	}
	// The action has happened: its answer is stored even if the caller has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return out, s.storeAnswer(ctx, prepared, out.Output)
}

func (s *Service) acceptAction(ctx context.Context, t *tx.Tx, in ActionInput) (*preparedAction, error) {
	const verb = "invokeAction"
	row, err := t.Instance.Query().Where(dbinstance.ID(in.InstanceID)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, verb, authz.FamilyKeys("instance.read")[0], in.InstanceID)
	}
	if err != nil {
		return nil, fmt.Errorf("load instance %s: %w", in.InstanceID, err)
	}
	where, share, err := actingFor(ctx, t, row, in.ProjectID)
	if err != nil {
		return nil, err
	}
	p, err := specOf(ctx, t, row, in, where)
	if err != nil {
		return nil, err
	}
	p.actor = t.Actor
	p.where, p.share = where, share
	if share == "" {
		in.ProjectID = "" // named or not, the caller is the instance's own project
	}
	if err := audit.Require(t, verb, p.key, where, row.ID); err != nil {
		return nil, err
	}
	if err := t.Actor.RequireRisk(lifecycle.ActionRisk(strings.ToUpper(p.spec.Risk))); err != nil {
		return nil, audit.Refused(t, verb, p.key, where, row.ID, fault.From(err))
	}
	p.claim = idem.Key{
		Verb: verb, TenantID: where.TenantID, ProjectID: where.ProjectID, Value: in.IdempotencyKey, Input: in,
	}
	repeated, err := idem.Claim(ctx, t, p.claim, &p.answer)
	if err != nil {
		return nil, err
	}
	p.call.CorrelationID = t.Request.CorrelationID
	if p.answer.Output != nil { // the stored answer is valid whatever state the instance is in now
		return p, nil
	}
	if err := p.check(row, in); err != nil {
		return nil, err
	}
	p.call.Instance = row
	if p.call.Manifest.ActsAsPeople() {
		p.call.Account, err = posix.Own(ctx, t, row.TenantID)
	}
	if share == "" && err == nil {
		err = p.prepare(ctx, t, in)
	}
	if err != nil || repeated {
		return p, err
	}
	return p, p.note(ctx, t, in)
}

// check refuses an action that the instance cannot take now, or input that breaks its schema.
func (p *preparedAction) check(row *db.Instance, in ActionInput) error {
	if row.Status != lifecycle.InstanceRunning {
		return fault.New(fault.FailedPrecondition, "instance %s is %s, not running", row.ID, row.Status).
			At("input.instanceId")
	}
	if reasons := manifest.Validate(p.spec.InputSchema, in.Input, "input"); len(reasons) > 0 {
		return fault.New(fault.InvalidArgument, "the input does not fit the action's schema").With(reasons...)
	}
	return nil
}

// specOf finds the action in the manifest. A caller who may not even read the instance does not learn which actions
// exist.
func specOf(
	ctx context.Context, t *tx.Tx, row *db.Instance, in ActionInput, where authz.Object,
) (*preparedAction, error) {
	document, err := manifestOf(ctx, t, row)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(document.Actions, func(a manifest.Action) bool { return a.Name == in.Action })
	if at < 0 {
		read, err := authz.FamilyKey(row.PermissionFamily, "instance.read")
		if err != nil {
			return nil, err
		}
		if err := audit.Require(t, "invokeAction", read, where, row.ID); err != nil {
			return nil, err
		}
		return nil, fault.New(fault.NotFound, "app %q has no action %q", row.AppSlug, in.Action).At("input.action")
	}
	key, err := authz.ParseKey(document.Actions[at].PermissionKey)
	p := &preparedAction{spec: document.Actions[at], key: key}
	p.call.Reads = p.spec.Risk == "read"
	p.call.Manifest = document
	return p, err
}

// prepare loads what the adapter is sent.
func (p *preparedAction) prepare(ctx context.Context, t *tx.Tx, in ActionInput) error {
	row := p.call.Instance
	adapter, err := t.Adapter.Query().Where(dbadapter.Name(row.RuntimeBackend)).Only(ctx)
	if err != nil {
		return fmt.Errorf("load adapter %s: %w", row.RuntimeBackend, err)
	}
	members, err := t.Member.Query().Where(dbmember.InstanceID(row.ID), dbmember.StatusNEQ(lifecycle.MemberRemoved)).
		Order(db.Asc(dbmember.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the members of %s: %w", row.ID, err)
	}
	nodes, err := nodesOf(ctx, t, members)
	if err != nil {
		return err
	}
	allocations, err := allocationsOf(ctx, t, row.ID)
	if err != nil {
		return err
	}
	input := in.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	p.call.Name, p.call.Input, p.call.IdempotencyKey = in.Action, input, in.IdempotencyKey
	p.call.Requester, p.call.ProjectID = t.Actor.Ref(), p.where.ProjectID
	p.call.Adapter, p.call.Members = adapter, members
	p.call.Nodes, p.call.Allocations = nodes, allocations
	return nil
}

func nodesOf(ctx context.Context, t *tx.Tx, members []*db.Member) (map[ids.ID]*db.ComputeNode, error) {
	nodes := make(map[ids.ID]*db.ComputeNode)
	var wanted []ids.ID
	for _, member := range members {
		if member.NodeID != nil && !slices.Contains(wanted, *member.NodeID) {
			wanted = append(wanted, *member.NodeID)
		}
	}
	found, err := t.ComputeNode.Query().Where(dbnode.IDIn(wanted...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the nodes: %w", err)
	}
	for _, node := range found {
		nodes[node.ID] = node
	}
	return nodes, nil
}

func allocationsOf(ctx context.Context, t *tx.Tx, instanceID ids.ID) (map[ids.ID]*db.Allocation, error) {
	found, err := t.Allocation.Query().Where(dballocation.InstanceID(instanceID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the allocations of %s: %w", instanceID, err)
	}
	byID := make(map[ids.ID]*db.Allocation, len(found))
	for _, allocation := range found {
		byID[allocation.ID] = allocation
	}
	return byID, nil
}

func (s *Service) callAdapter(ctx context.Context, p *preparedAction) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	output, err := s.Calls.Invoke(ctx, p.call)
	if err != nil {
		return nil, err
	}
	if reasons := manifest.Validate(p.spec.OutputSchema, output, "output"); len(reasons) > 0 {
		return nil, fault.New(fault.AdapterInvalid, "the adapter's answer does not fit the action's schema").
			With(reasons...)
	}
	return output, nil
}

// storeAnswer stores the answer for repeats, and writes the event of an action that changed something.
func (s *Service) storeAnswer(ctx context.Context, p *preparedAction, output json.RawMessage) error {
	return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := idem.Store(ctx, t, p.claim, answered{Output: output}); err != nil {
			return err
		}
		told := event.Draft{
			Type: lifecycle.EventActionInvoked, Message: p.spec.DisplayName, CorrelationID: t.Request.CorrelationID,
			Payload: map[string]any{"action": p.spec.Name, "by": t.Actor.Name},
		}
		if p.share == "" {
			return event.Append(ctx, t, p.call.Instance, told)
		}
		told.Payload["project"] = p.where.ProjectID
		return event.AppendShared(ctx, t, p.share, p.call.Instance, told)
	})
}
