package triage_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/contracttest"
	"github.com/gpuaas/app-platform/service/triage"
)

// What a caller sends as it comes is what the SDL takes: each document with its variables, of each action that a
// report of the scenes names, and every action of the table is named in one of them.
func TestEachActionIsReadyToBeSent(t *testing.T) {
	t.Parallel()
	schema, err := contracttest.LoadSchema("../../graph/schema/*.graphql")
	require.NoError(t, err)
	named := map[string]bool{}
	for name, rows := range scenes() {
		next := triage.Explain(rows, func(authz.Key) bool { return true }).Next
		if next == nil {
			continue
		}
		named[next.Mutation] = true
		require.True(t, next.Allowed, name)
		holds(t, schema, next.Document, next.Variables)
		require.Equal(t, next.Plan != "", next.PlanDocument != "")
		if next.PlanDocument != "" {
			holds(t, schema, next.PlanDocument, next.PlanVariables)
			holds(t, schema, next.Document, agreed(t, next.Variables))
		}
	}
	for _, mutation := range triage.Mutations() {
		require.True(t, named[mutation], "no scene names %s", mutation)
	}
}

// holds requires that a document with its variables is what the SDL takes.
func holds(t *testing.T, schema *ast.Schema, document string, given json.RawMessage) {
	t.Helper()
	parsed, wrong := gqlparser.LoadQueryWithRules(schema, document, rules.NewDefaultRules())
	require.Empty(t, wrong, document)
	require.Len(t, parsed.Operations, 1)
	var variables map[string]any
	require.NoError(t, json.Unmarshal(given, &variables))
	_, err := validator.VariableValues(schema, parsed.Operations[0], variables)
	require.NoError(t, err, "%s\n%s", document, given)
}

// agreed is the variables with the hash of a plan.
func agreed(t *testing.T, given json.RawMessage) json.RawMessage {
	t.Helper()
	var variables map[string]map[string]any
	require.NoError(t, json.Unmarshal(given, &variables))
	variables["input"]["planHash"] = "a hash"
	text, err := json.Marshal(variables)
	require.NoError(t, err)
	return text
}

// A retry needs the key of what it repeats too.
func TestARetryIsAllowedWithBothKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		without string
		allowed bool
	}{"the kind's": {"apps.member.add", false}, "its own": {"operation.retry", false},
		"another": {"apps.member.drain", true}} {
		next := triage.Explain(scenes()["add failed"], func(key authz.Key) bool {
			return key.String() != c.without
		}).Next
		require.Equal(t, c.allowed, next.Allowed, name)
	}
}
