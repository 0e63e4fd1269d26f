package runbook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/runbook"
)

// book has a check of a code and one of facts.
var book = runbook.Runbook{Name: "engine", Title: "The engine", Checks: []runbook.Check{
	{Key: "start", Ask: "    look", Columns: []string{"seen", "do"}, Edges: []runbook.Edge{
		{Key: "cold", On: []string{"COLD"}, Step: "prepare", Seen: "cold", Do: "warm it",
			Act: runbook.Outside("warm it", "recoverMember")},
		{Key: "loud", Person: "only ears tell", Seen: "loud", Do: "listen", Act: runbook.Wait("it gets quiet")},
	}},
	{Key: "tank", Title: "The tank", Columns: []string{"seen", "do"}, Edges: []runbook.Edge{
		{Key: "empty", When: []runbook.Condition{runbook.Below("key.days", 1), runbook.None("ready")}, Seen: "empty",
			Do: "fill", Act: runbook.Calls("retryOperation")},
		{Key: "other", When: []runbook.Condition{runbook.Has("message", "leak", "rust"), runbook.Some("state")},
			Seen: "wet", Do: "mend", Act: runbook.Outside("mend it")},
	}},
}}

func TestAWalkTakesTheFirstEdgeThatAllItsFactsHoldFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		facts runbook.Facts
		want  string
	}{
		{"a code in its step", runbook.Facts{"code": {"COLD"}, "step": {"prepare"}, "key.days": {"0.5"}}, "start/cold"},
		{"the code in another step", runbook.Facts{"code": {"COLD"}, "step": {"await"}}, ""},
		{"a number below", runbook.Facts{"key.days": {"7", "0.5"}}, "tank/empty"},
		{"a number at its bound", runbook.Facts{"key.days": {"1"}}, ""},
		{"no number", runbook.Facts{"key.days": {"soon"}}, ""},
		{"a fact that must be absent", runbook.Facts{"key.days": {"0"}, "ready": {"yes"}}, ""},
		{"a part of a text", runbook.Facts{"message": {"some rust"}, "state": {"FAILED"}}, "tank/other"},
		{"one of two facts", runbook.Facts{"message": {"some rust"}}, ""},
		{"nothing", nil, ""},
	} {
		place, edge, taken := book.Walk(c.facts)
		require.Equal(t, c.want, place, c.name)
		require.Equal(t, c.want != "", taken, c.name)
		require.Equal(t, taken, edge.Act.String() != "", c.name)
	}
}

func TestAPageShowsHowAProgramWalksIt(t *testing.T) {
	t.Parallel()
	require.Equal(t, `# The engine

    look

| seen | do |
|---|---|
| cold | warm it |
| loud | listen |

## The tank

| seen | do |
|---|---|
| empty | fill |
| wet | mend |

## How a program walks it

Edges in order: the first that applies is taken. Facts are those of the [list](README.md#facts).

| edge | taken when | act |
|---|---|---|
| `+"`start/cold` | `code` is `COLD`, `step` is `prepare` | warm it; `recoverMember`"+` |
| `+"`start/loud` | a person sees it: only ears tell"+` | wait: it gets quiet |
| `+"`tank/empty` | `key.days` below 1, no `ready` | `retryOperation`"+` |
| `+"`tank/other` | `message` contains `leak` or `rust`, some `state`"+` | mend it |
`, book.Page())
}

func TestFactsKeepEachValueOnce(t *testing.T) {
	t.Parallel()
	facts := runbook.Facts{}
	facts.Add("state", "FAILED", "", "FAILED")
	require.Equal(t, runbook.Facts{"state": {"FAILED"}}, facts)
	require.True(t, runbook.IsKnown("state"))
	require.False(t, runbook.IsKnown("weather"))
}
