package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

func TestAPanicIsLoggedOnceWithItsStackAndTellsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, bearer, where string
		status               int
	}{
		"in a resolver":    {"{ fail(how: PANIC) }", "x", "testschema", http.StatusOK},
		"in the transport": {"{ hello }", "panic", "kit_test.go", http.StatusInternalServerError},
	} {
		log := new(bytes.Buffer)
		engine, err := transport.NewEngine(transport.Config{Schema: testschema.New().Executable(),
			Present: testschema.Present,
			Log:     slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		handler, err := httpapi.New(httpapi.Options{Engine: engine, Authenticate: authenticate})
		require.NoError(t, err)
		request := httptest.NewRequest(http.MethodPost, "/graphql",
			strings.NewReader(fmt.Sprintf(`{"query":%q}`, c.query)))
		request.Header.Set("Content-Type", legacy)
		request.Header.Set("Authorization", "Bearer "+c.bearer)
		request.Header.Set("X-Correlation-ID", "planted-1")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(t, c.status, answer.Code, name)
		require.Contains(t, answer.Body.String(), `"code":"INTERNAL"`, name)
		require.Contains(t, answer.Body.String(), `"correlation_id":"planted-1"`, name)
		for _, secret := range []string{"secret", "panic", "goroutine", ".go", "/work"} {
			require.NotContains(t, answer.Body.String(), secret, name)
		}
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "%s: %s", name, log)
		require.Contains(t, log.String(), "correlation_id=planted-1", name)
		require.Contains(t, log.String(), "goroutine", name)
		require.Contains(t, log.String(), c.where, name)
	}
}

func TestABodyThatDripsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	url := setup(t, func(o *httpapi.Options) { o.BodyTimeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn,
		"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	answer, err := io.ReadAll(conn) // to the end: the connection is closed too
	require.NoError(t, err)
	require.Contains(t, string(answer), "400 Bad Request")
	require.Contains(t, string(answer), "REQUEST_INVALID")
}
