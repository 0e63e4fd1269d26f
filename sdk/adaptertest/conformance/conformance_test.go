package conformance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
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
	for _, id := range []string{"crash.feed", "crash.resumes", "feed.continues", "feed.first", created} {
		require.True(t, chosen[id], id)
	}
	require.False(t, chosen["cancel.running"])
	require.ErrorIs(t, knownClauses([]string{"crash", "nonsense"}), ErrOptions)
}

func TestSamplesFitAndSpoiledOnesDoNot(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"bounds":   `{"type":"object","required":["n","s"],"properties":{"n":{"type":"integer","minimum":3},"s":{"type":"string","minLength":4}}}`,
		"nested":   `{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["l"],"properties":{"l":{"type":"array","minItems":2,"items":{"enum":["a","b"]}}}}}}`,
		"closed":   `{"type":"object","additionalProperties":false,"properties":{"x":{"type":"boolean"}}}`,
		"nothing":  `null`,
		"optional": `{"type":"object","properties":{"x":{"type":"string"}}}`,
	} {
		value, ok := sample(json.RawMessage(schema))
		require.True(t, ok, "%s: %v", name, value)
		bad, ok := spoil(json.RawMessage(schema))
		require.True(t, ok, name)
		require.False(t, fits(json.RawMessage(schema), bad), name)
	}
	_, ok := sample(json.RawMessage(`{"type":"object","required":["x"],"properties":{"x":{"type":"string","pattern":"^[0-9]{8}$"}}}`))
	require.False(t, ok, "a pattern is not guessed")
	_, ok = spoil(json.RawMessage(`true`))
	require.False(t, ok, "nothing breaks a schema that takes everything")
	_, err := compile(json.RawMessage(`{"$ref":"https://elsewhere.example/schema"}`))
	require.Error(t, err)
}

func TestTheDigestRestsOnOutcomesAlone(t *testing.T) {
	t.Parallel()
	one := Report{Results: []Result{{ID: "b.b", Outcome: Passed, Seconds: 1}, {ID: "a.a", Outcome: Skipped, Reason: "x"}}, Started: time.Now()}
	two := Report{Results: []Result{{ID: "a.a", Outcome: Skipped, Reason: "y"}, {ID: "b.b", Outcome: Passed, Seconds: 2}}}
	require.NoError(t, one.seal())
	require.NoError(t, two.seal())
	require.Equal(t, one.Digest, two.Digest)
	two.Results[0].Outcome = Failed
	require.NoError(t, two.seal())
	require.NotEqual(t, one.Digest, two.Digest)
	raw, err := canonical(one.Digested)
	require.NoError(t, err)
	require.Equal(t, `{"adapter":{"build":"","name":""},"app":"","clauses":[{"id":"a.a","outcome":"skipped"},{"id":"b.b","outcome":"passed"}],"contractVersion":"","suiteVersion":""}`, string(raw))
}

func TestReportsShowNoTokens(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"token":"(token)"} and (token).`, hideTokens(`{"token":"gpu_op_ABC234"} and gpu_op_XYZ.`))
}

func TestEffectsThatEvenACleanCreateRepeatsAreWaiting(t *testing.T) {
	t.Parallel()
	write, poll := effect{"unit-0", adapter.TaskWriteFile, "/a"}, effect{"unit-0", adapter.TaskRun, "poll"}
	clean := profile{write: 1, poll: 3}
	require.Empty(t, clean.repeated(profile{write: 1, poll: 9}))
	require.Contains(t, clean.repeated(profile{write: 2, poll: 3}), "carried out 2 times")
	require.Contains(t, clean.repeated(profile{effect{"unit-1", adapter.TaskRun, "x"}: 2}), "RUN")
}

func TestARunThatIsCutShortSaysSoAndPassesNothing(t *testing.T) {
	t.Parallel()
	// An adapter that describes itself and then keeps everybody waiting.
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == adapter.AdapterPath {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"name":"slow","build":"b","contractVersions":["1.1"],"apps":[{"slug":"slow","components":[{"key":"k","min":1,"max":1,"default":1}],"operations":["instance.create","instance.decommission"]}]}`))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that a client has gone only when it has read all
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	report, err := Run(t.Context(), Options{Name: "slow", URL: slow.URL, Listen: "127.0.0.1:0", Only: []string{"dispatch.repeat"}, Bounds: Bounds{Overall: 300 * time.Millisecond}})
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

func TestACommandIsKilledWithAllItStarted(t *testing.T) {
	t.Parallel()
	c := &Command{Line: `echo "up as $ADAPTER_NAME at $ADAPTER_LISTEN"; sleep 600 & wait`, Name: "n", StateDir: t.TempDir()}
	url, err := c.Start(t.Context(), "http://platform")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(c.Output(), "up as n at "+strings.TrimPrefix(url, "http://")) }, 10*time.Second, 5*time.Millisecond)
	_, err = c.Start(t.Context(), "http://platform")
	require.ErrorContains(t, err, "not killed")
	require.NoError(t, c.Kill())
	require.NoError(t, c.Kill())
	again, err := c.Start(t.Context(), "http://platform")
	require.NoError(t, err)
	require.Equal(t, url, again, "it comes back where it was")
	require.NoError(t, c.Kill())
}
