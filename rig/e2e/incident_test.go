package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/otlptest"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// incident is a cluster one of whose members dies.
type incident struct {
	t        *testing.T
	ctx      context.Context
	admin    *client.Client // who triages
	traces   *otlptest.Receiver
	instance string
	dead     string // the member
	since    time.Time
}

// TestOneIdLeadsFromAnErrorToItsCure has a member's init die on its node, and an action fail because of it. The
// correlation id of that error alone leads through the logs of server and agent, the trace, the timeline, the node's
// task and the audit to the cause, while every worker is dead, and the action that the report names cures it: in the
// console, and then by the command line alone.
func TestOneIdLeadsFromAnErrorToItsCure(t *testing.T) {
	needsRoot(t)
	ctx := bounded(t)
	i := &incident{t: t, ctx: ctx, traces: otlptest.Unserved(t)}
	ownInstallation(t, ctx, stack.Config{Nodes: 1, Servers: 2, Roles: []string{"api", "worker,billing"},
		Traces: i.traces})
	_, code, err := shared.LoginLink(ctx, shared.Demo.AdminID)
	require.NoError(t, err)
	i.admin, err = shared.LogIn(ctx, code)
	require.NoError(t, err)
	c := automation(t)
	var operation string
	i.instance, operation = launch(t, ctx, c, "hello-cluster", "incident", rent(t, ctx, c))
	succeeds(t, ctx, c, operation)

	i.byTheConsole()
	i.byTheCommandLine()
	decommission(t, ctx, c, i.instance)
}

// dies kills the init of a member, and waits until the platform knows.
func (i *incident) dies() {
	i.t.Helper()
	members := membersOf(i.t, i.ctx, i.admin, i.instance)
	i.dead, i.since = members[0].Id, time.Now()
	killInit(i.t, i.ctx, nodeOf(i.t, members[0]), i.dead)
	require.Eventually(i.t, func() bool {
		return membersOf(i.t, i.ctx, i.admin, i.instance)[0].Status == gql.MemberStatusFailed
	}, noticed, 100*time.Millisecond)
}

func (i *incident) byTheConsole() {
	i.t.Helper()
	i.dies()
	_, code, err := shared.LoginLink(i.ctx, shared.Demo.AdminID)
	require.NoError(i.t, err)
	guides(i.t, i.ctx, "incident", map[string]func([]byte){
		"refused": func(line []byte) {
			require.NoError(i.t, shared.KillOthers())
			var refused struct{ Correlation string }
			require.NoError(i.t, json.Unmarshal(line, &refused))
			i.leads(refused.Correlation)
		},
		"found": func([]byte) { require.NoError(i.t, shared.StartOthers(i.ctx)) },
		"cured": func([]byte) { i.cured() },
	}, "e2e/incident.mjs", "--base", shared.URL, "--login-code", code, "--instance", i.instance)
}

// leads requires that everything about the request is found by its correlation id.
func (i *incident) leads(correlation string) {
	i.t.Helper()
	answer, err := gql.ShowTriage(i.ctx, i.admin, correlation)
	require.NoError(i.t, err)
	report := answer.Triage
	require.Equal(i.t, gql.TriageStandFailed, report.Stands)
	require.Equal(i.t, "MEMBER_FAILED", report.Code)
	require.NotNil(i.t, report.Branch)
	require.Equal(i.t, "instance-stuck", report.Branch.Runbook)
	require.Equal(i.t, "recoverMember", report.Next.Mutation)
	require.Equal(i.t, i.dead, report.Next.Value)
	require.Equal(i.t, i.instance, *report.InstanceId)

	task := i.evidence(&report, gql.TriageEvidenceKindTask, func(e gql.TriageEvidence) bool {
		return e.State == "FAILED"
	})
	require.NotNil(i.t, task.Id)
	i.evidence(&report, gql.TriageEvidenceKindAudit, func(e gql.TriageEvidence) bool {
		return e.What == "invokeAction hello.say" && e.State == "ADAPTER_REJECTED"
	})

	i.logged("server.log", correlation, `"msg":"request"`, `"verb":"invokeAction"`, `"code":"ADAPTER_REJECTED"`)
	i.logged("server.log", correlation, `"msg":"adapter call"`, `"code":"rejected"`)
	i.logged("agent-node-1.log", correlation, *task.Id, `"state":"FAILED"`)
	i.traced(correlation)
	i.told()
}

// evidence returns the first piece of a kind that a test of it takes.
func (i *incident) evidence(report *gql.Triage, kind gql.TriageEvidenceKind,
	is func(gql.TriageEvidence) bool) gql.TriageEvidence {
	i.t.Helper()
	at := slices.IndexFunc(report.Evidence, func(e gql.TriageEvidence) bool { return e.Kind == kind && is(e) })
	require.GreaterOrEqual(i.t, at, 0, "no %s in %+v", kind, report.Evidence)
	return report.Evidence[at]
}

// logged requires that a program's log has a line with the correlation id and all of the texts.
func (i *incident) logged(file, correlation string, texts ...string) {
	i.t.Helper()
	require.Eventually(i.t, func() bool {
		content, err := os.ReadFile(filepath.Join(shared.LogDir(), file))
		require.NoError(i.t, err)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, correlation) &&
				!slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return true
			}
		}
		return false
	}, noticed, 100*time.Millisecond, "no line of %s has %s and %v", file, correlation, texts)
}

// traced requires that the request, its task on the node and the adapter's calls are one trace.
func (i *incident) traced(correlation string) {
	i.t.Helper()
	require.Eventually(i.t, func() bool {
		programs := map[string][]string{} // by trace
		for _, span := range i.traces.Spans() {
			if otlptest.Attribute(span, "correlation_id") == correlation {
				trace := string(span.GetTraceId())
				programs[trace] = append(programs[trace], i.traces.From(span))
			}
		}
		for _, from := range programs {
			if slices.Contains(from, "app-platform") && slices.Contains(from, "node-agent") {
				return true
			}
		}
		return false
	}, noticed, 100*time.Millisecond, "no trace of %s has spans of server and agent", correlation)
}

// told requires that the instance's timeline has the member's end.
func (i *incident) told() {
	i.t.Helper()
	page, err := gql.ListEvents(i.ctx, i.admin, i.instance, 100, "")
	require.NoError(i.t, err)
	for _, edge := range page.Instance.Events.Edges {
		if told := edge.Node; told.Type == "apps.instance.member_failed" && told.MemberId != nil &&
			*told.MemberId == i.dead && told.OccurredAt.After(i.since) {
			return
		}
	}
	require.Fail(i.t, "the timeline does not have the member's end")
}

// cured waits for the end of the recovery, whose reason names the request that it was found from.
func (i *incident) cured() {
	i.t.Helper()
	require.Eventually(i.t, func() bool {
		page, err := gql.ListOperations(i.ctx, i.admin, shared.Demo.ProjectID, nil, 10, "")
		require.NoError(i.t, err)
		for _, edge := range page.Operations.Edges {
			if op := edge.Node; op.Kind == gql.OperationKindMemberRecover && op.CreatedAt.After(i.since) {
				require.Contains(i.t, op.Reason, "MEMBER_FAILED at invokeAction")
				succeeds(i.t, i.ctx, i.admin, op.Id)
				return true
			}
		}
		return false
	}, noticed, 100*time.Millisecond, "nobody recovers the member")
}

// byTheCommandLine is the same with nothing but appctl, as the service account whose request failed.
func (i *incident) byTheCommandLine() {
	i.t.Helper()
	i.dies()
	greet := []string{"action", "run", "incident", "hello.say", "--set", "name=Ada"}
	_, complaint, code := appctlAs(i.t, i.ctx, shared.Demo.ServiceAccountKey, greet...)
	require.NotZero(i.t, code)
	found := regexp.MustCompile(`correlation id: (\S+)`).FindStringSubmatch(complaint)
	require.NotNil(i.t, found, complaint)
	require.NoError(i.t, shared.KillOthers())
	said := appctl(i.t, i.ctx, "triage", found[1])
	require.Contains(i.t, said, "MEMBER_FAILED")
	require.Contains(i.t, said, "appctl members recover "+i.dead)
	require.NoError(i.t, shared.StartOthers(i.ctx))
	appctl(i.t, i.ctx, "triage", found[1], "--do", "--yes", "--wait")
	i.cured()
	require.Contains(i.t, appctl(i.t, i.ctx, greet...), "Ada")
}
