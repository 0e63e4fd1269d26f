package auditchain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/auditchain"
)

// example is the entry of docs/guides/audit.md.
func example(t testing.TB) auditchain.Entry {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, "2026-11-22T10:00:00.123450Z")
	require.NoError(t, err)
	tenant, project := "ten_01m80bpspxf4xbd4gzsz2vb8z4", "prj_01m80bpspzexrt6xhv74jpn1q2"
	return auditchain.Entry{
		ID: "aud_01m80bpsqbfh7a2mcqy8t9v6wk", TenantID: &tenant, ProjectID: &project, ActorKind: "USER",
		ActorID:   "usr_01m80bpsq1e6ya9d0r3k5n7p8s",
		ActorName: "Ada", PermissionKey: "apps.instance.create", Action: "launchInstance", Allowed: true,
		ObjectID: "ins_01m80bpsq5fxv8h2j4m6q9s1t3",
		After: json.RawMessage(
			`{"name": "one", "share": 0.50, "gpus": 1e1, "note": "a\u003cb\n\u00e9", "empty": {}}`),
		Reason: `first "run"`, Repeats: 1, CorrelationID: "c-1", Origin: "192.0.2.7",
		CreatedAt: at.In(time.FixedZone("", 3600)),
	}
}

func TestTheGuidesExampleIsWhatIsHashed(t *testing.T) {
	t.Parallel()
	canonical, err := example(t).Canonical()
	require.NoError(t, err)
	leaf := auditchain.Leaf(canonical)
	guide, err := os.ReadFile("../../docs/guides/audit.md")
	require.NoError(t, err)
	for what, text := range map[string]string{"the form": string(canonical), "the leaf": leaf.String(),
		"the first link": auditchain.Next(auditchain.Hash{}, leaf).String()} {
		require.True(t, strings.Contains(string(guide), text), "docs/guides/audit.md lacks %s: %s", what, text)
	}
}

func TestWhatMeansTheSameHasOneForm(t *testing.T) {
	t.Parallel()
	form := func(document string) string {
		canonical, err := auditchain.Entry{After: json.RawMessage(document)}.Canonical()
		require.NoError(t, err, document)
		text, _ := strings.CutPrefix(string(canonical),
			`{"action":"","actorId":"","actorKind":"","actorName":"","after":`)
		text, _, _ = strings.Cut(text, `,"allowed"`)
		return text
	}
	for document, want := range map[string]string{
		``: `null`, `null`: `null`, ` [ 1 , 2 ] `: `[1,2]`,
		`{"b":1,"a":{"d":[],"c":null}}`: `{"a":{"c":null,"d":[]},"b":1}`,
		`1.0`:                           `1`, `-0`: `0`, `-0.0e5`: `0`, `1e3`: `1000`, `12.5e-3`: `0.0125`,
		`0.10`: `0.1`, `-1.50`: `-1.5`,
		`9007199254740993`: `9007199254740993`, `1E+2`: `100`,
		`"\u0041\/\u00e9\ud83d\ude00\u0001\u007f\b"`: "\"A/é😀\\u0001\u007f\\b\"",
		`{"\ud83d\ude00":1,"\uff61":2}`:              "{\"😀\":1,\"｡\":2}", // by UTF-16, not by UTF-8
	} {
		require.Equal(t, want, form(document), document)
	}
	for _, document := range []string{`{`, `1 2`, `1e5000`, strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		_, err := auditchain.Entry{Before: json.RawMessage(document)}.Canonical()
		require.Error(t, err, "%.20s", document)
	}
}

func TestEveryFieldCounts(t *testing.T) {
	t.Parallel()
	base, err := example(t).Canonical()
	require.NoError(t, err)
	other := "x"
	for i, change := range []func(*auditchain.Entry){
		func(e *auditchain.Entry) {
			e.ID += "x"
		}, func(e *auditchain.Entry) { e.TenantID = nil }, func(e *auditchain.Entry) {
			e.ProjectID = &other
		},
		func(e *auditchain.Entry) { e.ActorKind = "x" }, func(e *auditchain.Entry) { e.ActorID = "x" },
		func(e *auditchain.Entry) { e.ActorName = "x" },
		func(e *auditchain.Entry) { e.PermissionKey = "x" }, func(e *auditchain.Entry) { e.Action = "x" },
		func(e *auditchain.Entry) { e.Allowed = false },
		func(e *auditchain.Entry) { e.ObjectID = "x" }, func(e *auditchain.Entry) { e.Before = json.RawMessage(`{}`) },
		func(e *auditchain.Entry) { e.After = nil },
		func(e *auditchain.Entry) {
			e.Reason = "x"
		}, func(e *auditchain.Entry) { e.Code = "x" }, func(e *auditchain.Entry) {
			e.Repeats = 2
		},
		func(e *auditchain.Entry) { e.CorrelationID = "x" }, func(e *auditchain.Entry) { e.Origin = "x" },
		func(e *auditchain.Entry) { e.BreakGlass = true },
		func(e *auditchain.Entry) { e.CreatedAt = e.CreatedAt.Add(time.Microsecond) },
	} {
		e := example(t)
		change(&e)
		changed, err := e.Canonical()
		require.NoError(t, err)
		require.NotEqual(t, string(base), string(changed), fmt.Sprint("change ", i))
	}
}

func FuzzCanonical(f *testing.F) {
	for _, document := range []string{`{"a":1.50}`, `[null,true,"\u0000"]`, `-1e-7`, `{`} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		canonical, err := auditchain.Entry{After: json.RawMessage(document)}.Canonical()
		if err != nil {
			return
		}
		require.True(t, json.Valid(canonical), string(canonical))
		var back struct{ After json.RawMessage }
		require.NoError(t, json.Unmarshal(canonical, &back))
		again, err := auditchain.Entry{After: back.After}.Canonical()
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(again))
	})
}
