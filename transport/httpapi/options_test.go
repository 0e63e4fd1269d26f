package httpapi_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
)

func TestDevelopmentPageIsForBrowsersOnly(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<page>") })
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	on, off := setup(t, func(o *httpapi.Options) { o.GraphiQL = page }), setup(t, nil)
	require.Equal(t, "<page>", call(t, on, http.MethodGet, "", "Accept", browser).text)
	require.Equal(t, http.StatusMethodNotAllowed, call(t, on, http.MethodGet, "", "Accept", "*/*").status)
	require.Equal(t, http.StatusMethodNotAllowed, call(t, on, http.MethodGet, "", "Accept",
		legacy+", text/html;q=0.5").status)
	require.Equal(t, http.StatusMethodNotAllowed, call(t, off, http.MethodGet, "").status)
}

func TestUpgradesGoToTheWebSocketHandler(t *testing.T) {
	t.Parallel()
	upgraded := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	url := setup(t, func(o *httpapi.Options) { o.WebSocket = upgraded })
	require.Equal(t, http.StatusTeapot, call(t, url, http.MethodGet, "", "Connection", "Upgrade", "Upgrade",
		"websocket").status)
	require.Equal(t, http.StatusMethodNotAllowed, call(t, url, http.MethodGet, "").status)
	require.Equal(t, http.StatusOK, call(t, url, http.MethodPost, `{"query":"{ hello }"}`, "Connection", "Upgrade",
		"Upgrade", "websocket").status)
}

func TestOptionsNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := httpapi.New(httpapi.Options{})
	require.ErrorContains(t, err, "Engine is missing")
	_, err = httpapi.New(httpapi.Options{Engine: &transport.Engine{}})
	require.ErrorContains(t, err, "Authenticate is missing")
}
