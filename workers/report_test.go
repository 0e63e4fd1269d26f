package workers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestReportsAreFencedByTheDispatchAndTheToken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("reporter")
	l.work()
	w := l.world("reporter", s.url)
	it, other := l.launch(w, time.Minute), l.launch(w, time.Minute)
	dispatch := s.dispatched(string(it.create))[0]
	s.dispatched(string(other.create))
	caller := l.caller("Bearer " + dispatch.Platform.Token)
	active, failed, healthy := lifecycle.MemberActive, lifecycle.MemberFailed, lifecycle.HealthHealthy
	phase, percent, message := "joining", 50, "members join"
	in := operation.ReportInput{OperationID: it.create, Attempt: 1, Phase: &phase, Percent: &percent, Message: &message,
		Members: []operation.MemberReport{
			{ID: it.members[0], Status: &active, Health: &healthy, Detail: json.RawMessage(`{"nul":"\u0000"}`)},
			{ID: it.members[1], Status: &failed},
			{ID: other.members[0], Status: &failed},
		}}
	view, err := operation.Report(caller, l.db, in)
	require.NoError(t, err)
	require.Equal(t, "joining", view.Phase)
	require.Equal(t, operation.AdapterPercent(50), view.Percent)
	member := l.own.Member.GetX(t.Context(), it.members[0])
	require.Equal(t, lifecycle.MemberJoining, member.Status, "only the platform makes a member ACTIVE")
	require.Equal(t, lifecycle.HealthHealthy, member.Health)
	require.Contains(t, string(member.AdapterDetail), `"ACTIVE"`)
	require.Equal(t, lifecycle.MemberFailed, l.own.Member.GetX(t.Context(), it.members[1]).Status)
	require.Equal(t, lifecycle.MemberJoining, l.own.Member.GetX(t.Context(), other.members[0]).Status,
		"a member of another instance is left alone")

	less := 20
	view, err = operation.Report(caller, l.db, operation.ReportInput{OperationID: it.create, Attempt: 1,
		Percent: &less})
	require.NoError(t, err)
	require.Equal(t, operation.AdapterPercent(50), view.Percent, "never back")

	_, err = operation.Report(caller, l.db, operation.ReportInput{OperationID: other.create, Attempt: 1})
	require.True(t, fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound), "%v", err)
	_, err = operation.Report(caller, l.db, operation.ReportInput{OperationID: ids.New(ids.Operation), Attempt: 1})
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	bad := 101
	_, err = operation.Report(caller, l.db, operation.ReportInput{OperationID: it.create, Attempt: 1, Percent: &bad})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	_, err = operation.Report(caller, l.db, operation.ReportInput{OperationID: it.create, Attempt: 2})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)

	l.own.Operation.UpdateOneID(it.create).SetDispatchAttempt(2).ExecX(t.Context())
	_, err = operation.Report(caller, l.db, in)
	require.True(t, fault.Is(err, fault.StaleFence), "%v", err)
	l.own.Operation.UpdateOneID(it.create).SetDispatchAttempt(1).ExecX(t.Context())

	renewed, err := operation.RenewToken(caller, l.db, l.ring)
	require.NoError(t, err)
	_, err = operation.Report(l.caller("Bearer "+renewed.Text), l.db,
		operation.ReportInput{OperationID: it.create, Attempt: 1, Message: &message})
	require.NoError(t, err)

	call, err := operation.IssueCallToken(t.Context(), l.ring, operation.Call{Instance: it.instance,
		Keys: []authz.Key{authz.OperationReport}, Life: time.Minute}, time.Now())
	require.NoError(t, err)
	_, err = operation.Report(l.caller("Bearer "+call.Text), l.db, in)
	require.True(t, fault.Is(err, fault.Forbidden), "the token of a call reports nothing: %v", err)
	_, err = operation.RenewToken(l.caller("Bearer "+call.Text), l.db, l.ring)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)

	s.say(failedStatus(string(it.create)))
	l.ended(it.create)
	_, err = operation.Report(caller, l.db, in)
	require.True(t, fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.FailedPrecondition),
		"the token ends with its operation: %v", err)
}
