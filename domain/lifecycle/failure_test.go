package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReasonsOfFailureAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for i, rule := range FailureRules() {
		require.Equal(t, rule.Failure.Values()[i], string(rule.Failure), "every reason has one row")
		require.Equal(t, rule, rule.Failure.Rule())
		fmt.Fprintf(&out, "%-14s  found by %-8s  files survive %-5t  ordinary %-5t  %s\n", rule.Failure, rule.FoundBy,
			rule.FilesSurvive, rule.Ordinary, rule.Text)
	}
	golden(t, "failures.golden", out.String())
	require.Len(t, FailureRules(), len(FailureInitGone.Values()))
	require.Empty(t, MemberFailure("OTHER").Rule().FoundBy)
}

func TestAMemberFailsByAFindingOnlyWhereItMayBecomeFailed(t *testing.T) {
	t.Parallel()
	inService := []MemberStatus{MemberActive, MemberDraining, MemberDrained}
	for _, name := range MemberActive.Values() {
		status := MemberStatus(name)
		require.Equal(t, slices.Contains(inService, status), status.AtRest(),
			"%s: in the others an operation reports", name)
		if status.AtRest() {
			require.NoError(t, status.CanMove(MemberFailed), name)
		}
	}
}

func TestHealthsAreOrdered(t *testing.T) {
	t.Parallel()
	order := []Health{HealthHealthy, HealthDegraded, HealthUnknown, HealthUnhealthy}
	for i, one := range order {
		for j, other := range order {
			require.Equal(t, i > j, one.Worse(other), "%s %s", one, other)
		}
	}
}
