package change_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTheTableOfRulesIsTheOneThatIsPrinted(t *testing.T) {
	t.Parallel()
	printed := strings.Builder{}
	for _, rule := range change.Rules() {
		effects := rule.Kind.Effects()
		fmt.Fprintf(&printed, "%s (%s)\n  key        <family>.%s\n  instance   %s\n", rule.Kind, rule.Noun,
			effects.Permission, join(rule.Instance))
		if rule.Member != nil {
			fmt.Fprintf(&printed, "  member     %s\n", join(rule.Member))
		}
		fmt.Fprintf(&printed, "  scope      %s\n", effects.Scope)
		if made := supersedes(rule.Kind); made != "" {
			fmt.Fprintf(&printed, "  supersedes %s\n", made)
		}
		fmt.Fprintf(&printed, "  members    %+d for each asked, placed in allocations: %t\n", rule.More, rule.Places)
		fmt.Fprintf(&printed, "  disturbs   %t\n  force      %t\n  cancel     %t\n", rule.Disturbs, effects.Forcible,
			effects.Cancelable)
		if rule.Reason != "" {
			fmt.Fprintf(&printed, "  reason     needed when %s\n", rule.Reason)
		}
		fmt.Fprintf(&printed, "  plan       %s, reversible: %t, %s\n\n", rule.Touches, rule.Reversible, rule.Reversal)
	}
	const golden = "testdata/rules.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(printed.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), printed.String(),
		"a rule has changed: read the difference, then run go test ./service/change -update")
}

func join[S ~string](list []S) string {
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = string(one)
	}
	return strings.Join(names, ", ")
}

func supersedes(kind lifecycle.OperationKind) string {
	var made []lifecycle.OperationKind
	for _, other := range lifecycle.Kinds() {
		if kind.Supersedes(other.Kind) {
			made = append(made, other.Kind)
		}
	}
	return join(made)
}

func TestEveryKindThatAnAdapterSeesButALaunchHasARule(t *testing.T) {
	t.Parallel()
	ruled := map[lifecycle.OperationKind]bool{}
	for _, rule := range change.Rules() {
		ruled[rule.Kind] = true
		require.NotEmpty(t, rule.Noun)
		require.NotEmpty(t, rule.Reversal, "a plan says how a change is taken back, or why not")
	}
	for _, effects := range lifecycle.Kinds() {
		require.Equal(t, effects.Wire != "" && effects.Kind != lifecycle.InstanceCreate, ruled[effects.Kind],
			effects.Kind)
	}
}
