package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A link may have commas in it, and is one piece of evidence.
func TestEvidenceOfAGapIsSentAsItWasGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.run(t.Context(), "", "gaps", "raise", "hello", "--kind", "missing-event", "--title", "queue",
		"--description", "full",
		"--evidence", "https://logs.example/?from=1,to=2", "--evidence", "ins_1")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, []any{"https://logs.example/?from=1,to=2", "ins_1"}, r.CallsOf("raiseGap")[0].Input()["evidence"])
}
