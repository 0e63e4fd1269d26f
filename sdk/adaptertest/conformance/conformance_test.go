package conformance

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

func TestClausesHaveStableIDsAndNeedOnlyEarlierOnes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, clause := range Clauses() {
		require.Regexp(t, regexp.MustCompile(`^[a-z]+\.[a-z_]+$`), clause.ID)
		require.False(t, seen[clause.ID], clause.ID)
		for _, need := range clause.Needs {
			require.True(t, seen[need], "%s needs %s, which does not come before it", clause.ID, need)
		}
		require.NotEmpty(t, clause.Rule+clause.Fix+clause.Section, clause.ID)
		require.NotContains(t, clause.Rule, "\n")
		seen[clause.ID] = true
	}
	require.Greater(t, len(seen), 100)
}

func TestAChosenClauseBringsWhatItNeeds(t *testing.T) {
	t.Parallel()
	chosen := selected([]string{"crash.feed"})
	for _, id := range []string{"crash.feed", "crash.resumes", "feed.continues", "feed.first", trial.Created} {
		require.True(t, chosen[id], id)
	}
	require.False(t, chosen["cancel.running"])
	require.ErrorIs(t, knownClauses([]string{"crash", "nonsense"}), ErrOptions)
}

func TestTheDigestRestsOnOutcomesAlone(t *testing.T) {
	t.Parallel()
	one := Report{
		Results: []Result{{ID: "b.b", Outcome: Passed, Seconds: 1}, {ID: "a.a", Outcome: Skipped, Reason: "x"}},
		Started: time.Now(),
	}
	two := Report{Results: []Result{{ID: "a.a", Outcome: Skipped, Reason: "y"},
		{ID: "b.b", Outcome: Passed, Seconds: 2}}}
	require.NoError(t, one.seal())
	require.NoError(t, two.seal())
	require.Equal(t, one.Digest, two.Digest)
	two.Results[0].Outcome = Failed
	require.NoError(t, two.seal())
	require.NotEqual(t, one.Digest, two.Digest)
	raw, err := canonical(one.Digested)
	require.NoError(t, err)
	require.Equal(
		t,
		`{"adapter":{"build":"","name":""},"app":"",`+
			`"clauses":[{"id":"a.a","outcome":"skipped"},{"id":"b.b","outcome":"passed"}],`+
			`"contractVersion":"","suiteVersion":""}`,
		string(raw),
	)
}

func TestARunThatIsCutShortSaysSoAndPassesNothing(t *testing.T) {
	t.Parallel()
	// An adapter that describes itself and then keeps everybody waiting.
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == adapter.AdapterPath {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(
				[]byte(
					`{"name":"slow","build":"b","contractVersions":["1.1"],"apps":[{"slug":"slow",` +
						`"components":[{"key":"k","min":1,"max":1,"default":1}],` +
						`"operations":["instance.create","instance.decommission"]}]}`,
				),
			)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that a client has gone only when it has read all
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	report, err := Run(
		t.Context(),
		Options{
			Name: "slow", URL: slow.URL, Listen: "127.0.0.1:0", Only: []string{"dispatch.repeat"},
			Bounds: Bounds{Overall: 300 * time.Millisecond},
		},
	)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, report.Count(Passed))
	require.Equal(t, len(report.Results), report.Count(NotRun), "%v", report.Results)
	require.False(t, report.OK())
}

func TestACommandThatEndsByItselfIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := &Command{Line: `echo "flag provided but not defined" >&2; exit 2`, Name: "n", StateDir: t.TempDir()}
	_, err := Run(t.Context(), Options{Name: "n", Launcher: c})
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "has ended")
	require.ErrorContains(t, err, "flag provided but not defined")
	require.Less(t, time.Since(began), 20*time.Second)
}
