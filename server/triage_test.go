package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a report names is sent as it comes: the plan's document with its variables, and then the mutation's with the
// hash that the plan answered. Nothing is put together by the caller.
func TestTheActionThatAReportNamesIsSentAsItComes(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Links.Trace = "https://tools.example.com/trace/{trace_id}" })
	h := b.build()
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE ended_at IS NULL`)
	got := b.post(h.admin, `mutation($input: DrainMemberInput!) { drainMember(input: $input) { operation { id } } }`,
		arguments{"input": object{"memberId": h.Member, "idempotencyKey": "k"}})
	require.Empty(t, got.Errors, got.Raw)
	var made struct {
		DrainMember struct{ Operation struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(got.Data), &made))
	failed := made.DrainMember.Operation.ID
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now(), error_code = 'DEADLINE_EXCEEDED',
		error_owner = 'user'
		WHERE id = $1`, failed)
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE id = $1`, h.Member)
	got = b.post(h.admin, `query($id: String!) { triage(id: $id) { stands traceId links { name url } costSoFar { amount } others { operationId }
		next { mutation plan allowed document variables planDocument planVariables } evidence { kind link traceId } } }`,
		arguments{"id": failed})
	require.Empty(t, got.Errors, got.Raw)
	var report struct {
		Triage struct {
			Stands, TraceID string
			Links           []struct{ Name, URL string }
			Next            struct {
				Mutation, Plan, Document, PlanDocument string
				Allowed                                bool
				Variables                              struct{ Input object }
				PlanVariables                          arguments
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.Data), &report))
	next := report.Triage.Next
	require.Equal(t, []any{"FAILED", "retryOperation", "planRetryOperation", true},
		[]any{report.Triage.Stands, next.Mutation, next.Plan, next.Allowed})
	require.Equal(t, "https://tools.example.com/trace/"+report.Triage.TraceID, report.Triage.Links[0].URL)

	got = b.post(h.admin, next.PlanDocument, next.PlanVariables)
	require.Empty(t, got.Errors, got.Raw)
	var plans map[string]struct {
		Hash    string
		Allowed bool
	}
	require.NoError(t, json.Unmarshal([]byte(got.Data), &plans))
	require.True(t, plans[next.Plan].Allowed, got.Raw)

	before := b.Count("operation", "")
	next.Variables.Input["planHash"] = "another"
	got = b.post(h.admin, next.Document, arguments{"input": next.Variables.Input})
	require.Equal(t, "PLAN_STALE", got.code(), got.Raw)
	require.Equal(t, before, b.Count("operation", ""))
	next.Variables.Input["planHash"] = plans[next.Plan].Hash
	for range 2 { // sent again as it is, it has no further effect
		got = b.post(h.admin, next.Document, arguments{"input": next.Variables.Input})
		require.Empty(t, got.Errors, got.Raw)
		require.Equal(t, before+1, b.Count("operation", ""))
	}
	require.Equal(t, 1, b.Count("operation", "retry_of = $1 AND reason LIKE 'triage: DEADLINE_EXCEEDED at %'", failed))

	got = b.post(h.admin,
		`query($id: String!) { supportBundle(id: $id) { name digest content sections { name rows } leftOut { what } } }`,
		arguments{"id": failed})
	require.Empty(t, got.Errors, got.Raw)
	require.Contains(t, got.Data, `support-bundle-`+failed)
}

func TestATemplateThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	config := Defaults()
	config.DatabaseURL, config.Links.Dashboard = "postgres://x", "http://grafana.example.com/{app_instance_id}"
	require.ErrorContains(t, config.complete(), "--dashboard-url-template: the address must be https")
}
