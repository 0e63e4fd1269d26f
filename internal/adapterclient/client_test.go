package adapterclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const issuer = "https://platform.test"

// serve runs an adapter's handler and answers a client that may dial it, and its target.
func serve(t *testing.T, handler http.HandlerFunc) (*adapterclient.Client, adapterclient.Target) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ring, err := token.NewKeyring(issuer)
	require.NoError(t, err)
	client := adapterclient.New(ring, dial.Loopback())
	t.Cleanup(client.Close)
	return client, adapterclient.Target{Name: "demo", URL: server.URL + "/"}
}

func kindOf(t *testing.T, err error) adapterclient.Kind {
	t.Helper()
	failed, ok := adapterclient.As(err)
	require.True(t, ok, "%v", err)
	require.NotEmpty(t, failed.Reason())
	require.NotContains(t, failed.Reason(), "127.0.0.1", "no address leaves the server")
	return failed.Kind
}

func TestRequestsAreSignedForOneAdapterAndTraced(t *testing.T) {
	t.Parallel()
	ring, err := token.NewKeyring(issuer)
	require.NoError(t, err)
	public, err := ring.Public()
	require.NoError(t, err)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(public)
	}))
	t.Cleanup(keys.Close)
	set := adapter.NewKeySet(keys.URL, http.DefaultClient)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		good, other := adapter.Verifier{Issuer: issuer, Audience: "demo", Keys: set},
			adapter.Verifier{Issuer: issuer, Audience: "other", Keys: set}
		if good.VerifyRequest(r, nil) != nil || other.VerifyRequest(r, nil) == nil ||
			r.Header.Get(adapter.HeaderCorrelation) != "corr" ||
			r.Header.Get(adapter.HeaderTraceparent) != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, `{"operationId":"op_1","attempt":1,"state":"running"}`)
	}))
	t.Cleanup(server.Close)
	client := adapterclient.New(ring, dial.Loopback())
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceFlags: trace.FlagsSampled,
		TraceID: trace.TraceID{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e,
			0x47, 0x36},
		SpanID: trace.SpanID{0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}})
	ctx := trace.ContextWithSpanContext(t.Context(), caller)
	status, err := client.Status(ctx, adapterclient.Target{Name: "demo", URL: server.URL}, "op_1",
		adapterclient.Trace{CorrelationID: "corr"})
	require.NoError(t, err)
	require.Equal(t, adapter.StateRunning, status.State)
}

func TestAnswersBecomeKindsOfFailure(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		code int
		body string
		want adapterclient.Kind
	}{
		"refused for safety":  {422, `{"code":"UNSAFE","message":"no"}`, adapterclient.Rejected},
		"other specification": {409, `{"code":"BODY_MISMATCH","message":"no"}`, adapterclient.Conflict},
		"unknown":             {404, `{"code":"NOT_FOUND","message":"no"}`, adapterclient.Missing},
		"broken":              {500, `oops`, adapterclient.Unavailable},
		"too many":            {429, ``, adapterclient.Unavailable},
		"says to try again": {400, `{"code":"BUSY","message":"later","retryable":true}`,
			adapterclient.Unavailable},
		"signature refused":       {401, `{}`, adapterclient.Invalid},
		"a redirect is no answer": {302, ``, adapterclient.Invalid},
		"no JSON":                 {200, `hello`, adapterclient.Invalid},
		"status of another": {200, `{"operationId":"op_2","attempt":1,"state":"running"}`,
			adapterclient.Invalid},
		"state outside of the list": {200, `{"operationId":"op_1","attempt":1,"state":"asleep"}`,
			adapterclient.Invalid},
		"longer than its bound": {200, `"` + strings.Repeat("x", adapter.MaxBody) + `"`, adapterclient.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(one.code)
				_, _ = fmt.Fprint(w, one.body)
			})
			_, err := client.Status(t.Context(), target, "op_1", adapterclient.Trace{})
			require.Equal(t, one.want, kindOf(t, err))
		})
	}
}

func TestSilenceIsUnavailable(t *testing.T) {
	t.Parallel()
	client, target := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Status(ctx, target, "op_1", adapterclient.Trace{})
	require.Equal(t, adapterclient.Unavailable, kindOf(t, err))
}

func TestDescriptionMustBearTheRegisteredName(t *testing.T) {
	t.Parallel()
	client, target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"contractVersions":["1.0"],"name":"demo","apps":[]}`)
	})
	_, err := client.Describe(t.Context(), target)
	require.NoError(t, err)
	target.Name = "other"
	_, err = client.Describe(t.Context(), target)
	require.Equal(t, adapterclient.Invalid, kindOf(t, err))
}

func TestOnlyWhatThePolicyAllowsIsDialled(t *testing.T) {
	t.Parallel()
	_, target := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	ring, err := token.NewKeyring(issuer)
	require.NoError(t, err)
	policy, err := dial.ParsePolicy("10.0.0.0/8")
	require.NoError(t, err)
	client := adapterclient.New(ring, policy)
	_, err = client.Describe(t.Context(), target)
	require.Equal(t, adapterclient.Forbidden, kindOf(t, err))
	target.URL = strings.Replace(target.URL, "127.0.0.1", "localhost", 1)
	_, err = client.Describe(t.Context(), target)
	require.Equal(t, adapterclient.Forbidden, kindOf(t, err), "a name is judged by its address")
}

func TestVersionOfTheContractMustBeOneThePlatformSpeaks(t *testing.T) {
	t.Parallel()
	for versions, accepted := range map[string]bool{`["1.0"]`: true, `["1.1"]`: true, `["1.1","1.0"]`: true,
		`["2.0","1.0"]`: true, `["2.0"]`: false, `[]`: false} {
		client, target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"contractVersions":%s,"name":"demo","apps":[]}`, versions)
		})
		_, err := client.Describe(t.Context(), target)
		if accepted {
			require.NoError(t, err, versions)
			continue
		}
		require.Equal(t, adapterclient.Invalid, kindOf(t, err), versions)
	}
}
