package adapterclient

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// says answers every request the same.
type says struct {
	status int
	body   []byte
}

// RoundTrip implements http.RoundTripper.
func (s says) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(s.body))}, nil
}

// FuzzAnswers: whatever an adapter answers, a call ends in what the contract allows or in an Error with
// a reason that a person can read.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"contractVersions":["1.1"],"name":"demo","apps":[]}`, `{"operationId":"op_1","attempt":1,"state":"RUNNING"}`,
		`{"verdict":"SAFE"}`, `{"code":"x","message":"y"}`, `{"epoch":"e","cursor":"c","operations":[]}`,
		`null`, `[]`, `{`,
		``, `{"outcome":"STOPPED"}`,
	} {
		f.Add(200, []byte(seed))
		f.Add(422, []byte(seed))
	}
	ring, err := token.NewKeyring("https://platform.test")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			return
		}
		c := New(ring, dial.Loopback())
		c.clients.local = &http.Client{Transport: says{status, body}, CheckRedirect: c.clients.local.CheckRedirect}
		target := Target{Name: "demo", URL: "http://127.0.0.1:1"}
		check := func(err error, valid bool) {
			if failed, ok := As(err); err != nil && (!ok || failed.Reason() == "") {
				t.Fatalf("%v", err)
			}
			if err == nil && !valid {
				t.Fatalf("took %d %q", status, body)
			}
		}
		described, err := c.Describe(t.Context(), target)
		check(err, described.Name == "demo")
		planned, err := c.Plan(t.Context(), target, adapter.PlanRequest{}, Trace{})
		check(err, planned.Verdict.Valid())
		stands, err := c.Status(t.Context(), target, "op_1", Trace{})
		check(err, stands.OperationID == "op_1" && stands.State.Valid())
		page, err := c.Changes(t.Context(), target, "", 0)
		check(err, page.Epoch != "" && len(page.Operations) <= adapter.MaxPage)
		seen, err := c.Observe(t.Context(), target, "ins_1", "", Trace{})
		check(err, seen.InstanceID == "ins_1")
		stopped, err := c.Cancel(t.Context(), target, "op_1", 1, Trace{})
		check(err, stopped.Outcome.Valid())
	})
}
