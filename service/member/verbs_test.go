package member_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/member"
)

// verb is one verb on the first member, as a table has it.
type verb struct {
	kind   lifecycle.OperationKind
	key    string
	change string // the contract's change
	status []lifecycle.MemberStatus
	cordon bool
	call   func(*bundle, context.Context, member.Input) (*member.Changed, error)
}

var verbs = map[string]verb{
	"drainMember": {kind: lifecycle.MemberDrain, key: "apps.node.operate", change: `{}`,
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Drain(ctx, in)
		}},
	"cordonMember": {kind: lifecycle.MemberCordon, key: "apps.node.operate", change: `{}`,
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Cordon(ctx, in)
		}},
	"uncordonMember": {kind: lifecycle.MemberUncordon, key: "apps.node.operate", change: `{}`, cordon: true,
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Uncordon(ctx, in)
		}},
	"labelMember": {kind: lifecycle.MemberLabel, key: "apps.node.operate", change: `{"labels":{"rack":"r-7"}}`,
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Label(ctx, member.LabelInput{Input: in, Labels: json.RawMessage(`{"rack": "r-7"}`)})
		}},
	"removeMember": {kind: lifecycle.MemberRemove, key: "apps.member.remove", change: `{}`,
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Remove(ctx, in)
		}},
	"replaceMember": {kind: lifecycle.MemberReplace, key: "apps.member.replace",
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Replace(ctx, member.ReplaceInput{Input: in})
		}},
	"recoverMember": {kind: lifecycle.MemberRecover, key: "apps.member.recover", change: `{}`,
		status: []lifecycle.MemberStatus{lifecycle.MemberFailed},
		call: func(b *bundle, ctx context.Context, in member.Input) (*member.Changed, error) {
			return b.service.Recover(ctx, in)
		}},
}

// ready brings the first member into a state that the verb accepts.
func (v verb) ready(b *bundle) {
	b.stands(0, v.status...)
	b.SQL(`UPDATE member SET cordoned = $2 WHERE id = $1`, b.members[0].ID, v.cordon)
}

func TestEveryVerbWritesItsOperationAndMovesNoState(t *testing.T) {
	t.Parallel()
	for action, v := range verbs {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			v.ready(b)
			before := b.Ent.Member.GetX(t.Context(), b.members[0].ID)
			changed, err := v.call(b, b.admin, b.on(0, "k"))
			require.NoError(t, err)
			after := b.Ent.Member.GetX(t.Context(), b.members[0].ID)
			require.Equal(t, []any{before.Status, before.Cordoned, changed.Operation.ID},
				[]any{after.Status, after.Cordoned, *after.LastOperationID})
			require.Equal(t, changed.Operation.CorrelationID, after.CorrelationID)
			require.Equal(t, changed.Operation.ID, *changed.Member.LastOperationID)

			op := b.operation(changed.Operation.ID)
			require.Equal(t, []any{v.kind, lifecycle.OperationPending, "a test", []ids.ID{b.members[0].ID},
				b.made.RuntimeBackend},
				[]any{op.Kind, op.State, op.Reason, op.Targets, op.AdapterName})
			require.Equal(t, 600, int(op.Deadline.Sub(op.CreatedAt).Seconds()))
			require.Equal(t, v.contract(changed), contractOf(t, op.DesiredChange))
			require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND operation_id = $2 AND member_id = $3",
				lifecycle.EventOperationAccepted, op.ID, after.ID))
			require.Equal(t, 1, b.Count("audit_entry",
				"allowed AND action = $1 AND permission_key = $2 AND object_id = $3", action, v.key, after.ID))
			require.Equal(t, 1, b.Count("instance", "last_operation_id = $1", op.ID))

			written := b.written()
			again, err := v.call(b, b.admin, b.on(0, "k"))
			require.NoError(t, err)
			require.Equal(t, op.ID, again.Operation.ID)
			require.Equal(t, written, b.written())
		})
	}
}

func (v verb) contract(changed *member.Changed) map[string]any {
	text := v.change
	if changed.Replacement != nil {
		text = `{"replacementId":"` + string(changed.Replacement.ID) + `"}`
	}
	return decoded(text)
}

// contractOf is the desired change without the platform's part.
func contractOf(t *testing.T, stored []byte) map[string]any {
	t.Helper()
	change := decoded(string(stored))
	require.Contains(t, change, "platform")
	delete(change, "platform")
	return change
}

func decoded(text string) map[string]any {
	out := map[string]any{}
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

func TestEveryVerbRefusesWhoMayNotAndWhatIsMalformed(t *testing.T) {
	t.Parallel()
	for action, v := range verbs {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			v.ready(b)
			viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
			stranger := b.As(b.User(b.Tenant()))
			before := b.written()
			_, err := v.call(b, viewer, b.on(0, "k"))
			platformtest.Refused(t, err, fault.Forbidden, "")
			require.Contains(t, fault.From(err).Message, v.key)
			_, err = v.call(b, stranger, b.on(0, "k"))
			platformtest.Refused(t, err, fault.NotFound, "")
			for _, c := range []struct {
				change func(*member.Input)
				code   fault.Code
				path   string
			}{
				{func(in *member.Input) { in.MemberID = ids.New(ids.Member) }, fault.NotFound, ""},
				{func(in *member.Input) { in.DeadlineSeconds = 29 }, fault.InvalidArgument, "input.deadlineSeconds"},
				{func(in *member.Input) {
					in.Reason = string(make([]byte, 1_001))
				}, fault.InvalidArgument, "input.reason"},
				{func(in *member.Input) { in.IdempotencyKey = "" }, fault.InvalidArgument, "input.idempotencyKey"},
				{func(in *member.Input) { in.Force, in.Reason = true, "" }, fault.InvalidArgument, v.forcePath()},
				{func(in *member.Input) {
					in.OnDeadline, in.Reason = lifecycle.DeadlineForce, ""
				}, fault.InvalidArgument, v.forcePath()},
			} {
				in := b.on(0, "k")
				c.change(&in)
				_, err := v.call(b, b.admin, in)
				platformtest.Refused(t, err, c.code, c.path)
			}
			require.Equal(t, before, b.written())
			b.SQL(`UPDATE instance SET status = 'STOPPING'`)
			_, err = v.call(b, b.admin, b.on(0, "k"))
			platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
			require.Contains(t, fault.From(err).Message, "STOPPING")
			require.Zero(t, b.Count("operation", ""))
			require.NotEmpty(t, b.Audit())
		})
	}
}

// forcePath is the field that is at fault when force is requested without a reason.
func (v verb) forcePath() string {
	if v.kind.Effects().Forcible {
		return "input.reason"
	}
	return "input.force"
}

func TestAVerbIsRefusedInEveryStateThatItsRuleDoesNotName(t *testing.T) {
	t.Parallel()
	all := lifecycle.MemberPending.Values()
	accepted := map[string][]string{
		"drainMember": {"ACTIVE", "DRAINING"}, "cordonMember": {"ACTIVE"},
		"uncordonMember": {"ACTIVE", "DRAINING", "DRAINED"},
		"labelMember":    {"ACTIVE", "DRAINING", "DRAINED"}, "recoverMember": {"FAILED"},
		"removeMember":  {"PENDING", "JOINING", "ACTIVE", "DRAINING", "DRAINED", "REMOVING", "FAILED"},
		"replaceMember": {"ACTIVE", "DRAINING", "DRAINED", "REMOVING", "FAILED"},
	}
	for action, v := range verbs {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.SQL(`ALTER TABLE member DISABLE TRIGGER USER`)
			v.ready(b)
			for _, status := range all {
				b.SQL(`UPDATE member SET status = $2 WHERE id = $1`, b.members[0].ID, status)
				before := b.written()
				_, err := v.call(b, b.admin, b.on(0, status))
				if contains(accepted[action], status) {
					require.NoError(t, err, status)
					b.SQL(`UPDATE operation SET state = 'CANCELED', ended_at = now() WHERE ended_at IS NULL`)
					b.SQL(`UPDATE instance SET roles = jsonb_set(roles, '{0,desired}', '3')`)
					continue
				}
				platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
				require.Contains(t, fault.From(err).Message, status)
				require.Equal(t, before, b.written(), status)
			}
		})
	}
}

func contains(list []string, one string) bool {
	for _, other := range list {
		if other == one {
			return true
		}
	}
	return false
}

func TestARemovalLowersWhatIsAskedForDownToTheMinimum(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.on(0, "a")
	in.Force, in.OnDeadline = true, lifecycle.DeadlineForce
	changed, err := b.service.Remove(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("operation", "id = $1 AND force AND on_deadline = 'FORCE'", changed.Operation.ID))
	require.Equal(t, 1, b.Count("instance", "roles -> 0 ->> 'desired' = '2'"))
	before := b.written()
	_, err = b.service.Remove(b.admin, b.on(1, "b"))
	platformtest.Refused(t, err, fault.LimitExceeded, "input.memberId")
	require.Equal(t, fault.CountOutOfBounds, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())
}

func TestAHealthyMemberIsReplacedForAReasonOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE member SET health = 'HEALTHY' WHERE id = $1`, b.members[0].ID)
	in := member.ReplaceInput{Input: b.on(0, "k")}
	in.Reason = ""
	before := b.written()
	_, err := b.service.Replace(b.admin, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	require.Equal(t, fault.Required, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())
	plan, err := b.service.PlanReplace(b.admin, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Equal(t, fault.Required, plan.Verdicts[0].Reasons[0].Code, "the plan says that a reason will be asked for")
	b.SQL(`UPDATE member SET health = 'UNHEALTHY' WHERE id = $1`, b.members[0].ID)
	_, err = b.service.Replace(b.admin, in)
	require.NoError(t, err)
}

func TestAReplacementComesWhereItIsSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	free := b.allocation()
	changed, err := b.service.Replace(b.admin, member.ReplaceInput{Input: b.on(2, "k"), AllocationID: free.ID})
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.MemberPending, "worker", 3, free.ID, *free.NodeID},
		[]any{changed.Replacement.Status, changed.Replacement.ComponentKey,
			changed.Replacement.Ordinal, *changed.Replacement.AllocationID, *changed.Replacement.NodeID})
	require.Equal(t, 1, b.Count("allocation", "id = $1 AND instance_id = $2", free.ID, b.made.ID))
	require.Equal(t, 1, b.Count("instance", "roles -> 0 ->> 'desired' = '3'"), "as many are asked for as before")

	before := b.written()
	_, err = b.service.Remove(b.admin, member.Input{MemberID: changed.Replacement.ID, DeadlineSeconds: 60, Reason: "no",
		IdempotencyKey: "r"})
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Contains(t, fault.From(err).Message, string(changed.Operation.ID),
		"the one that comes is in the same hands")
	_, err = b.service.Replace(b.admin, member.ReplaceInput{Input: b.on(0, "x"), AllocationID: ids.New(ids.Allocation)})
	platformtest.Refused(t, err, fault.NotFound, "input.allocationId")
	require.Equal(t, before, b.written())
}

func TestBadLabelsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.written()
	many := map[string]string{}
	for i := range 33 {
		many[string(rune('a'+i%26))+string(rune('a'+i/26))] = "x"
	}
	crowd, err := json.Marshal(many)
	require.NoError(t, err)
	for _, labels := range []string{``, `null`, `[]`, `{"a":1}`, `{"a b":"c"}`, `{"a":""}`,
		`{"a":"` + string(make([]byte, 70)) + `"}`, string(crowd)} {
		_, err := b.service.Label(b.admin, member.LabelInput{Input: b.on(0, "k"), Labels: json.RawMessage(labels)})
		platformtest.Refused(t, err, fault.InvalidArgument, "input.labels")
	}
	require.Equal(t, before, b.written())
	_, err = b.service.Label(b.admin, member.LabelInput{Input: b.on(0, "k"), Labels: json.RawMessage(`{}`)})
	require.NoError(t, err, "no label at all is a set too")
}
