package adapter

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const taskAnswer = `{"data":{"runNodeTask":{"id":"tsk_1","state":"SUCCEEDED","message":"","result":null}}}`

// answering is a platform that answers the nth call, from 1, at /any/path.
func answering(t *testing.T, answer func(n int32, w http.ResponseWriter, r *http.Request)) (Platform, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("POST /any/path", func(w http.ResponseWriter, r *http.Request) { answer(calls.Add(1), w, r) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return Platform{GraphQLURL: server.URL + "/any/path", Token: "tok-1"}, &calls
}

func runOnce(ctx context.Context, c *Client) (TaskResult, error) {
	return c.Run(ctx, "mem_a", TaskSpec{IdempotencyKey: "k", Kind: TaskRun,
		Spec: json.RawMessage(`{"command":["true"]}`)})
}

func TestPassingFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"a proxy without a backend":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"a server that failed":        func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"too many requests":           func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"an answer marked retryable":  refuseWith(`{"code":"CONFLICT","retryable":true}`),
		"a connection cut in between": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, calls := answering(t, func(n int32, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					fail(w)
					return
				}
				_, _ = io.WriteString(w, taskAnswer)
			})
			result, err := runOnce(t.Context(), NewClient(access, "cor-1", nil))
			require.NoError(t, err)
			require.Equal(t, TaskSucceeded, result.State)
			require.EqualValues(t, 2, calls.Load(), "tried again by one loop only")
		})
	}
}

func refuseWith(extensions string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"errors":[{"message":"no","extensions":`+extensions+`}]}`)
	}
}

func TestRefusalIsFinalAndTyped(t *testing.T) {
	t.Parallel()
	access, calls := answering(t, func(_ int32, w http.ResponseWriter, _ *http.Request) {
		refuseWith(`{"code":"STALE_FENCE"}`)(w)
	})
	_, err := runOnce(t.Context(), NewClient(access, "cor-1", nil))
	require.Equal(t, client.CodeStaleFence, client.CodeOf(err))
	require.EqualValues(t, 1, calls.Load())
}

func TestAnswerWithoutATaskIsNoEndedTask(t *testing.T) {
	t.Parallel()
	access, _ := answering(t, func(_ int32, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	_, err := runOnce(t.Context(), NewClient(access, "cor-1", nil))
	require.Equal(t, client.CodeInternal, client.CodeOf(err))
}

func TestAddressThatIsNoneIsTheErrorOfEveryCall(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "platform/graphql", "ftp://platform/graphql", "http://platform/graphql?x=1",
		"http://u:p@platform/graphql", "http://[/graphql"} {
		_, err := runOnce(t.Context(), NewClient(Platform{GraphQLURL: address, Token: "tok-1"}, "", nil))
		require.Equal(t, CodeInvalid, client.CodeOf(err), address)
		require.ErrorContains(t, err, "platform.graphqlUrl", address)
	}
}

func TestEveryTypedCallCarriesCorrelationAndARenewedToken(t *testing.T) {
	t.Parallel()
	var tokens []string
	access, _ := answering(t, func(n int32, w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization")+" "+r.Header.Get(HeaderCorrelation))
		if n == 1 {
			_, _ = io.WriteString(w,
				`{"data":{"renewOperationToken":{"token":"tok-2","expiresAt":"2100-01-01T00:00:00Z"}}}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":{"operation":{"id":"op_1"}}}`)
	})
	access.TokenExpiresAt = time.Now().Add(time.Minute)
	c := NewClient(access, "cor-1", nil)
	answer, err := gql.GetOperation(t.Context(), c, "op_1")
	require.NoError(t, err)
	require.Equal(t, "op_1", answer.Operation.Id)
	require.Equal(t, []string{"Bearer tok-1 cor-1", "Bearer tok-2 cor-1"}, tokens)
	require.Equal(t, "tok-2", c.Platform().Token)
}
