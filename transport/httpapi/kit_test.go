package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/guard"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

const (
	modern = "application/graphql-response+json"
	legacy = "application/json"
)

// setup serves the test schema; change edits the options.
func setup(t *testing.T, change func(*httpapi.Options)) string {
	t.Helper()
	engine, err := transport.NewEngine(transport.Config{
		Schema: testschema.New().Executable(), Present: testschema.Present, Limits: guard.Limits{Depth: 8},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	options := httpapi.Options{Engine: engine, Authenticate: authenticate}
	if change != nil {
		change(&options)
	}
	handler, err := httpapi.New(options)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func authenticate(ctx context.Context, c transport.Credential, _ *http.Request) (context.Context, error) {
	switch c.Raw {
	case "bad":
		return nil, errors.New("no such token")
	case "forbidden":
		return nil, transport.Refuse(transport.CodeForbidden, "not here")
	case "unavailable":
		return nil, transport.Refuse(transport.CodeUnavailable, "no database")
	case "fast":
		return nil, transport.Refuse(transport.CodeRateLimited, "too fast")
	case "panic":
		panic("secret")
	}
	return testschema.WithCaller(ctx, string(c.Source)+":"+c.Raw), nil
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// code of the answer's first error.
func (a answer) code() string {
	list, _ := a.body["errors"].([]any)
	if len(list) == 0 {
		return ""
	}
	return list[0].(map[string]any)["extensions"].(map[string]any)["code"].(string)
}

// call sends a request; headers come in pairs and replace the defaults.
func call(t *testing.T, url, method, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", legacy)
	request.Header.Set("Accept", modern)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
			continue
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	a := answer{status: response.StatusCode, header: response.Header, text: string(raw)}
	if strings.Contains(response.Header.Get("Content-Type"), "json") && len(raw) > 0 {
		require.NoError(t, json.Unmarshal(raw, &a.body), a.text)
	}
	return a
}
