package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const schemaFiles = "../../graph/schema/*.graphql"

func newClient(t *testing.T, url string, options client.Options) *client.Client {
	t.Helper()
	c, err := client.New(url, options)
	require.NoError(t, err)
	return c
}

// failFirst answers the first n requests with the status and reports how many requests came in all.
func failFirst(server *clienttest.Server, n int32, status int, header map[string]string) *atomic.Int32 {
	var seen atomic.Int32
	server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if seen.Add(1) > n {
			return false
		}
		for key, value := range header {
			w.Header().Set(key, value)
		}
		w.WriteHeader(status)
		return true
	})
	return &seen
}

func answerApps(server *clienttest.Server) {
	server.Handle("apps", func(clienttest.Call) (any, error) {
		return clienttest.Object{"edges": []clienttest.Object{{"cursor": "c1",
				"node": clienttest.Object{"slug": "hello"}}}},
			nil
	})
}

func TestNewRefusesAddressesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "gpu.example.com", "ftp://gpu.example.com", "https://", "https://u:p@h",
		"https://h?x=1", "http://h#f"} {
		_, err := client.New(address, client.Options{})
		require.ErrorContains(t, err, "server address", address)
	}
	_, err := client.New("http://h", client.Options{CorrelationID: "a b"})
	require.ErrorContains(t, err, "correlation id")
	_, err = client.New("http://h", client.Options{Token: "a\n"})
	require.ErrorContains(t, err, "token")
}

func TestRefusalCarriesTheEnvelope(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("launchInstance", func(clienttest.Call) (any, error) {
		return nil, &clienttest.Fault{Code: "CONFIG_INVALID", Message: "the configuration does not fit",
			Reasons: []clienttest.Object{
				{"code": "BAD_VALUE", "message": "must be at least 1", "path": "input.config.workers"},
			}}
	})
	c := newClient(t, server.URL, client.Options{CorrelationID: "corr-1"})
	_, err := gql.LaunchInstance(t.Context(), c, gql.LaunchInstanceInput{AllocationIds: []string{"alc_1"},
		IdempotencyKey: "k"})
	found, ok := client.AsError(err)
	require.True(t, ok)
	require.Equal(t, client.CodeConfigInvalid, found.Code)
	require.Equal(t, "corr-1", found.CorrelationID)
	require.Equal(t, "launchInstance", found.Field)
	require.False(t, found.Retryable)
	require.Equal(t, []client.Reason{{Code: "BAD_VALUE", Message: "must be at least 1", Path: "input.config.workers"}},
		found.Reasons)
	require.Equal(t, "CONFIG_INVALID: the configuration does not fit; input.config.workers: must be at least 1 "+
		"(correlation id corr-1)", err.Error())
}

func TestErrorTextDoesNotRepeatItself(t *testing.T) {
	t.Parallel()
	err := &client.Error{Code: "INVALID_ARGUMENT", Message: "must be 1 to 64", Reasons: []client.Reason{
		{Message: "must be 1 to 64", Path: "input.count"}, {Message: "must be 1 to 64"}, {Message: "another thing"},
	}}
	require.Equal(t, "INVALID_ARGUMENT: must be 1 to 64 (at input.count); another thing", err.Error())
}

func TestOptionalInputLeftEmptyIsLeftOut(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("launchInstance", func(clienttest.Call) (any, error) { return clienttest.Object{}, nil })
	c := newClient(t, server.URL, client.Options{})
	_, err := gql.LaunchInstance(t.Context(), c, gql.LaunchInstanceInput{
		ProjectId: "prj_1", AppSlug: "hello", Name: "one", AllocationIds: []string{"alc_1"}, IdempotencyKey: "k",
	})
	require.NoError(t, err)
	input := server.CallsOf("launchInstance")[0].Input()
	require.NotContains(t, input, "config")
	require.NotContains(t, input, "version")
	require.NotContains(t, input, "components")
	require.NotContains(t, input, "deadlineSeconds", "a zero would break its bounds")
}

func TestQueryIsRepeatedWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		http.StatusTooManyRequests} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			server := clienttest.New(t, schemaFiles)
			answerApps(server)
			seen := failFirst(server, 2, status, nil)
			var told []client.Retry
			c := newClient(t, server.URL, client.Options{OnRetry: func(r client.Retry) { told = append(told, r) }})
			answer, err := gql.ListApps(t.Context(), c, "", 0, "")
			require.NoError(t, err)
			require.Equal(t, "hello", answer.Apps.Edges[0].Node.Slug)
			require.EqualValues(t, 3, seen.Load())
			require.Len(t, told, 2)
			require.Equal(t, 2, told[1].Attempt)
		})
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	seen := failFirst(server, 100, http.StatusServiceUnavailable, nil)
	c := newClient(t, server.URL, client.Options{MaxAttempts: 2})
	_, err := gql.ListApps(t.Context(), c, "", 0, "")
	require.Equal(t, client.CodeUnavailable, client.CodeOf(err))
	require.EqualValues(t, 2, seen.Load())
}

func TestRetryAfterIsHeeded(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	answerApps(server)
	failFirst(server, 1, http.StatusTooManyRequests, map[string]string{"Retry-After": "1"})
	var waited time.Duration
	c := newClient(t, server.URL, client.Options{OnRetry: func(r client.Retry) { waited = r.Delay }})
	_, err := gql.ListApps(t.Context(), c, "", 0, "")
	require.NoError(t, err)
	require.Equal(t, time.Second, waited)
}

func TestMutationsAreRepeatedOnlyWhereHarmless(t *testing.T) {
	t.Parallel()
	createUser := func(key string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := gql.CreateUser(ctx, c, gql.CreateUserInput{IdempotencyKey: key})
			return err
		}
	}
	newKey := func(ctx context.Context, c *client.Client) error {
		_, err := gql.CreateServiceAccountKey(ctx, c, gql.CreateServiceAccountKeyInput{})
		return err
	}
	cases := map[string]struct {
		run    func(context.Context, *client.Client) error
		status int
		want   int32
	}{
		"with an idempotency key":             {createUser("k"), http.StatusServiceUnavailable, 2},
		"with an empty key it is not":         {createUser(""), http.StatusServiceUnavailable, 1},
		"without a key it is not":             {newKey, http.StatusServiceUnavailable, 1},
		"without a key when refused unread":   {newKey, http.StatusTooManyRequests, 2},
		"never when the server itself failed": {createUser("k"), http.StatusInternalServerError, 1},
		"marked repeatable": {func(ctx context.Context, c *client.Client) error {
			return newKey(client.Repeatable(ctx), c)
		},
			http.StatusBadGateway, 2},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clienttest.New(t, schemaFiles)
			server.Handle("createUser", func(clienttest.Call) (any, error) { return clienttest.Object{}, nil })
			server.Handle("createServiceAccountKey", func(clienttest.Call) (any, error) {
				return clienttest.Object{}, nil
			})
			seen := failFirst(server, 1, test.status, nil)
			err := test.run(t.Context(), newClient(t, server.URL, client.Options{}))
			require.Equal(t, test.want, seen.Load())
			require.Equal(t, test.want == 1, err != nil)
		})
	}
}

func TestRepetitionsShareTheCorrelationID(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	answerApps(server)
	var ids []string
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		ids = append(ids, r.Header.Get("X-Correlation-Id"))
		if len(ids) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return len(ids) == 1
	})
	c := newClient(t, server.URL, client.Options{})
	_, err := gql.ListApps(t.Context(), c, "", 0, "")
	require.NoError(t, err)
	require.Len(t, ids, 2)
	require.NotEmpty(t, ids[0])
	require.Equal(t, ids[0], ids[1])
	_, err = gql.ListApps(client.WithCorrelationID(t.Context(), "mine"), c, "", 0, "")
	require.NoError(t, err)
	require.Equal(t, "mine", ids[2])
}

func TestACallCarriesTheTraceOfItsContext(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	answerApps(server)
	var carried []string
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		carried = append(carried, r.Header.Get("Traceparent"))
		return false
	})
	c := newClient(t, server.URL, client.Options{})
	const at = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, given := range []string{at, "not one", ""} {
		_, err := gql.ListApps(client.WithTraceparent(t.Context(), given), c, "", 0, "")
		require.NoError(t, err)
	}
	require.Equal(t, []string{at, "", ""}, carried)
}

func TestNoServerIsUnavailable(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := newClient(t, gone.URL, client.Options{MaxAttempts: 2})
	_, err := gql.CreateServiceAccountKey(t.Context(), c, gql.CreateServiceAccountKeyInput{})
	found, ok := client.AsError(err)
	require.True(t, ok)
	require.Equal(t, client.CodeUnavailable, found.Code)
	require.True(t, found.Retryable)
	require.ErrorContains(t, err, "cannot reach the server")
}

func TestEndOfContextIsTheContextsError(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	ctx, cancel := context.WithCancel(t.Context())
	server.Handle("apps", func(call clienttest.Call) (any, error) {
		cancel()
		<-call.Context.Done()
		return nil, call.Context.Err()
	})
	_, err := gql.ListApps(ctx, newClient(t, server.URL, client.Options{}), "", 0, "")
	require.ErrorIs(t, err, context.Canceled)
}

func TestOversizedAnswerIsRefused(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("lintManifest", func(clienttest.Call) (any, error) {
		return clienttest.Object{"reasons": []clienttest.Object{{"message": strings.Repeat("x", 2000)}}}, nil
	})
	c := newClient(t, server.URL, client.Options{MaxResponseBytes: 1000})
	_, err := gql.LintManifest(t.Context(), c, []byte(`{}`))
	require.Equal(t, client.CodeMessageTooLarge, client.CodeOf(err))
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(elsewhere.Close)
	server := clienttest.New(t, schemaFiles)
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	})
	c := newClient(t, server.URL, client.Options{Token: "gpu_sa_secret"})
	_, err := gql.ListApps(t.Context(), c, "", 0, "")
	require.ErrorContains(t, err, "is the address right?")
	require.False(t, reached.Load())
}

func TestLoginRedeemsACodeOnce(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	expires := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	server.HandleLogin(func(code string) (string, time.Time, error) {
		if code != "good" {
			return "", time.Time{}, &clienttest.Fault{Code: "UNAUTHENTICATED", Message: "the code is unknown or used"}
		}
		return "gpu_ses_1", expires, nil
	})
	c := newClient(t, server.URL, client.Options{})
	session, err := c.Login(t.Context(), "good")
	require.NoError(t, err)
	require.Equal(t, &client.Session{Token: "gpu_ses_1", ExpiresAt: expires}, session)
	_, err = c.Login(t.Context(), "bad")
	require.Equal(t, client.CodeUnauthenticated, client.CodeOf(err))
	require.NoError(t, c.Logout(t.Context()))
	seen := failFirst(server, 9, http.StatusServiceUnavailable, nil)
	_, err = c.Login(t.Context(), "good")
	require.Equal(t, client.CodeUnavailable, client.CodeOf(err))
	require.EqualValues(t, 1, seen.Load(), "a code that may have been used is not sent again")
}

func TestAllReadsPageByPage(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("apps", func(call clienttest.Call) (any, error) {
		after, _ := call.Args["after"].(string)
		node := clienttest.Object{"cursor": after + "x", "node": clienttest.Object{"slug": "app-" + after}}
		info := clienttest.Object{"hasNextPage": len(after) < 3, "endCursor": after + "x"}
		return clienttest.Object{"edges": []clienttest.Object{node}, "pageInfo": info}, nil
	})
	c := newClient(t, server.URL, client.Options{})
	slugs := func(limit int) (slugs []string) {
		for app, err := range client.All[gql.App](limit, func(first int, after string) (*gql.AppPage, error) {
			answer, err := gql.ListApps(t.Context(), c, "", first, after)
			if err != nil {
				return nil, err
			}
			return &answer.Apps, nil
		}) {
			require.NoError(t, err)
			slugs = append(slugs, app.Slug)
		}
		return slugs
	}
	require.Equal(t, []string{"app-", "app-x", "app-xx", "app-xxx"}, slugs(100))
	require.Equal(t, []string{"app-", "app-x"}, slugs(2))
}
