package supportbundle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/supportbundle"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// The golden file is the allow-list: the reviewer of a new field sees it here.
func TestTheListOfFieldsIsGolden(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	for _, section := range supportbundle.Sections() {
		for _, field := range section.Fields {
			fmt.Fprintf(&printed, "%s.%s: %s\n", section.Name, field.Name, field.Kind)
			if field.Kind == supportbundle.Text {
				require.Contains(t, []string{"event", "blocker"}, section.Name,
					"free text is that of events and blockers alone")
			}
		}
	}
	const path = "testdata/fields.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(printed.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), printed.String())
}

const anID = "op_01m84z4rmyeanayg95np1hfjxw"

func TestWordsOfThePlatformAreLetThrough(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"node nod_01m84z4rmyeanayg95np1hfjxw does not answer: its agent was last seen 3m20s ago": "",
		"The adapter's answer was 503, tried 4 times since 2026-11-25T12:00:00Z (ADAPTER_BUSY).": "",
		"2 of 3 probes passed; waits for tcp port 6817":                                          "",
		"worker-1 on db.corp.example said hunter2":                                               "[…] on […] said […]",
		"aGVs bG8g d29y bGQK":                                      "[…] […] […] […]",
		"the password was swordfish":                               "the password was […]",
		"its password swordfish is":                                "its password […] is",
		"no route to 10.42.0.7, kubelet 1.36.3 at 10.42.0.7:10250": "no route to […] kubelet 1.36.3 at […]",
		strings.Repeat("word ", 1000):                              strings.Repeat("word ", 399) + "[…]",
		strings.Repeat("a1 ", 600):                                 strings.TrimSpace(strings.Repeat("[…] ", 333)),
	} {
		if want == "" {
			want = given
		}
		got, ok := supportbundle.Clean(given)
		require.True(t, ok, given)
		require.Equal(t, want, got)
		again, ok := supportbundle.Clean(got)
		require.True(t, ok)
		require.Equal(t, got, again, "what was let through is let through again unchanged")
	}
}

// secrets are what must never be in a bundle.
var secrets = []string{
	"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKr6Z1yqfzTQSbLJm0FQ0QZ0sGJz1mKXv3vQ4dW8rTtJoAoGCCqGSM49\n-----END EC " +
		"PRIVATE KEY-----",
	"postgres://admin:correcthorse@db.internal:5432/main?sslmode=require",
	"Authorization: Bearer 6f2c9d1e8b7a4c3d9e0f",
	"gpu_sa_01m84z4rmyeanayg95np1hfjxw_c2VjcmV0c2VjcmV0",
	"password=correcthorsebattery",
}

// Each secret, however it is encoded, makes a whole message disappear.
func TestSecretsAreFoundHoweverTheyAreEncoded(t *testing.T) {
	t.Parallel()
	for _, plain := range secrets {
		for name, encoded := range encodings(plain) {
			got, ok := supportbundle.Clean("the task said: " + encoded + " and ended")
			require.False(t, ok, "%s of %q gave %q", name, plain, got)
		}
	}
}

// encodings are the ways in which a secret may come into a text.
func encodings(plain string) map[string]string {
	quoted, _ := json.Marshal(plain)
	twice, _ := json.Marshal(string(quoted))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write([]byte(plain))
	_ = zip.Close()
	var unicode strings.Builder
	for _, r := range plain {
		fmt.Fprintf(&unicode, `\u%04x`, r)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(plain))
	return map[string]string{
		"plain": plain, "json": string(quoted), "json twice": string(twice), "unicode escapes": unicode.String(),
		"base64": encoded, "url-safe base64": base64.RawURLEncoding.EncodeToString([]byte(plain)),
		"base64 twice": base64.StdEncoding.EncodeToString([]byte(encoded)), "over lines": overLines(plain, 20),
		"base64 over lines": overLines(encoded, 16), "url": url.QueryEscape(plain),
		"hex":            hex.EncodeToString([]byte(plain)),
		"gzip in base64": base64.StdEncoding.EncodeToString(packed.Bytes()),
	}
}

func overLines(text string, width int) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), "\n")
}

func build(t *testing.T) []byte {
	t.Helper()
	var b supportbundle.Builder
	id := anID
	require.NoError(t, b.Add("operation", supportbundle.Row{"id": &id, "kind": "MEMBERS_ADD", "percent": 40,
		"force": false, "createdAt": noon, "endedAt": (*time.Time)(nil), "errorOwner": ""}))
	require.NoError(t, b.Add("event", supportbundle.Row{"type": "apps.instance.running", "message": "it runs"}))
	require.NoError(t, b.Add("event", supportbundle.Row{"type": "apps.instance.running", "message": secrets[1]}))
	b.LeaveOut("audit rows", "the caller does not have the permission key for them", 2)
	content, manifest, err := b.File(anID, noon)
	require.NoError(t, err)
	require.Len(t, manifest.Sections, 2)
	return content
}

func TestABundleIsWrittenAndVerified(t *testing.T) {
	t.Parallel()
	content := build(t)
	require.Contains(t, string(content), `{"section":"operation","row":{"id":"`+anID+
		`","kind":"MEMBERS_ADD","percent":40,"force":false,"createdAt":"2026-11-25T12:00:00Z"}}`)
	require.NotContains(t, string(content), "correcthorse")
	manifest, err := supportbundle.Verify(bytes.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, anID, manifest.About)
	require.Equal(t, 2, manifest.LeftOut[1].Count)
	require.Equal(t, supportbundle.Omission{What: "event.message", Why: "it may have a secret in it", Count: 1},
		manifest.LeftOut[0])
	require.Equal(t, string(content), string(build(t)), "the same rows make the same bytes")
}

func TestAChangedBundleIsNotVerified(t *testing.T) {
	t.Parallel()
	content := string(build(t))
	lines := strings.SplitAfter(content, "\n")
	for name, c := range map[string]struct{ changed, why string }{
		"a changed value": {strings.Replace(content, `"percent":40`, `"percent":41`, 1),
			"section operation was changed"},
		"a secret":           {strings.Replace(content, "it runs", "password=x", 1), "may have a secret"},
		"another text":       {strings.Replace(content, "it runs", "it ran", 1), "section event was changed"},
		"a field of no list": {strings.Replace(content, `"percent":40`, `"reason":"x"`, 1), "has no field reason"},
		"another kind":       {strings.Replace(content, `"percent":40`, `"percent":"40"`, 1), "not a whole number"},
		"a line less":        {strings.Join(lines[:len(lines)-2], ""), "missing"},
		"a line more":        {content + lines[1], "belongs to no section"},
		"no manifest":        {strings.Join(lines[1:], ""), "line 1"},
		"another format":     {strings.Replace(content, "bundle/1", "bundle/2", 1), "of the format"},
		"nothing":            {"", "line 1"},
		"too much":           {content + strings.Repeat(" ", supportbundle.MaxBytes), "larger than"},
	} {
		_, err := supportbundle.Verify(strings.NewReader(c.changed))
		require.ErrorContains(t, err, c.why, name)
	}
}

func TestNothingComesIntoABundleByAccident(t *testing.T) {
	t.Parallel()
	var b supportbundle.Builder
	require.ErrorContains(t, b.Add("operation", supportbundle.Row{"reason": "x"}),
		"section operation has no field reason")
	require.ErrorContains(t, b.Add("secrets", nil), "no section secrets")
	for field, value := range map[string]any{"id": "op_1", "kind": "lower", "errorOwner": "UPPER", "percent": "1",
		"force": 1, "createdAt": "yesterday", "requesterId": secrets[3], "errorCode": "AKIA0000000000000000"} {
		require.NoError(t, b.Add("operation", supportbundle.Row{field: value}))
	}
	content, manifest, err := b.File("not an id", noon)
	require.NoError(t, err)
	require.NotContains(t, string(content), "AKIA")
	require.Empty(t, manifest.About)
	require.Len(t, manifest.LeftOut, 8+4, "each is counted")
}

func TestABundleIsBounded(t *testing.T) {
	t.Parallel()
	var b supportbundle.Builder
	for range supportbundle.MaxRows + 10 {
		require.NoError(t, b.Add("event", supportbundle.Row{"message": strings.Repeat("long ", 390)}))
		require.NoError(t, b.Add("blocker", supportbundle.Row{"message": strings.Repeat("long ", 390)}))
	}
	content, manifest, err := b.File("", noon)
	require.NoError(t, err)
	require.Less(t, len(content), supportbundle.MaxBytes)
	require.GreaterOrEqual(t, manifest.LeftOut[0].Count, 10)
	_, err = supportbundle.Verify(bytes.NewReader(content))
	require.NoError(t, err)
}
