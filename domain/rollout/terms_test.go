package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTermsThatAreNotStoredAreTheDefaults(t *testing.T) {
	t.Parallel()
	usual := Terms{MinLaunches: 5, MinMinutes: 60, GraceHours: 24, SmokedArtifacts: true}
	own := Terms{MinMinutes: 60, GraceHours: 1, SecondApprover: true, RequireOnboarding: true}
	for stored, want := range map[string]Terms{
		"": usual, "null": usual, "{}": usual,
		`{"minLaunches": 0, "graceHours": 1, "secondApprover": true, "smokedArtifacts": false,
			"requireOnboarding": true}`: own,
	} {
		got, err := TermsOf([]byte(stored))
		require.NoError(t, err, stored)
		require.Equal(t, want, got, stored)
	}
	for _, stored := range []string{"7", "{", `{"minLaunches": "five"}`} {
		_, err := TermsOf([]byte(stored))
		require.Error(t, err, "%s: what cannot be read must not pass for the defaults", stored)
	}
}

func TestACanaryBecomesActiveOnceItHasItsLaunchesItsTimeAndItsApprover(t *testing.T) {
	t.Parallel()
	terms := Terms{MinLaunches: 5, MinMinutes: 60, SecondApprover: true}
	const (
		young  = "it has been the canary for 59m59s, and 1h0m0s are needed"
		second = "someone other than the one who staged it or started the canary must take this step"
	)
	for name, one := range map[string]struct {
		terms  Terms
		canary Canary
		lacks  []string
	}{
		"it has just enough":      {terms, Canary{Launches: 5, Age: time.Hour}, nil},
		"it has more than enough": {terms, Canary{Launches: 6, Age: 2 * time.Hour}, nil},
		"nothing is demanded":     {Terms{}, Canary{Same: true}, nil},
		"a launch is missing":     {terms, Canary{Launches: 4, Age: time.Hour}, few("its launches")},
		"a second is missing":     {terms, Canary{Launches: 5, Age: time.Hour - time.Second}, []string{young}},
		"a moment is missing":     {terms, Canary{Launches: 5, Age: time.Hour - 1}, []string{exact}},
		"the same takes the step": {terms, Canary{Launches: 5, Age: time.Hour, Same: true}, []string{second}},
		"the same may take it":    {DefaultTerms(), Canary{Launches: 5, Age: time.Hour, Same: true}, nil},
		"everything, in its order": {terms, Canary{Launches: 4, Age: time.Hour - time.Second, Same: true},
			append(few("its launches"), young, second)},
		"those of tenants count": {terms, Canary{Launches: 4, Whose: OfTenants, Age: time.Hour},
			few("its launches by tenants other than its publisher's")},
		"those of projects count": {terms, Canary{Launches: 4, Whose: OfProjects, Age: time.Hour},
			few("its launches in projects other than the one that publishes it")},
		"all count":     {terms, Canary{Launches: 4, Whose: OfAll, Age: time.Hour}, few("its launches")},
		"its own count": {terms, Canary{Launches: 4, Whose: Own, Age: time.Hour}, few("its launches")},
	} {
		require.Equal(t, one.lacks, one.terms.LacksActive(one.canary), name)
	}
}

// exact is what lacks a moment that rounds away: the step is refused all the same.
const exact = "it has been the canary for 1h0m0s, and 1h0m0s are needed"

// few is what lacks one of five of the launches that count.
func few(whose string) []string {
	return []string{"4 of " + whose + " have succeeded, and 5 are needed"}
}

func TestAVersionIsRetiredOnceItsGraceIsOver(t *testing.T) {
	t.Parallel()
	terms := Terms{GraceHours: 24}
	require.Empty(t, terms.LacksRetired(24*time.Hour), "the grace's last moment is over")
	require.Empty(t, terms.LacksRetired(25*time.Hour))
	require.Empty(t, Terms{}.LacksRetired(0), "no grace is asked for")
	require.Equal(t, []string{"it has been DEPRECATED for 23h59m59s, and 24h0m0s are needed"},
		terms.LacksRetired(24*time.Hour-time.Second))
	require.Equal(t, []string{"it has been DEPRECATED for 24h0m0s, and 24h0m0s are needed"},
		terms.LacksRetired(24*time.Hour-1), "what is told is rounded, and what is judged is not")
}
