package clienttest_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

const schemaFiles = "../../../graph/schema/*.graphql"

// post sends a document and returns the answer's text.
func post(t *testing.T, server *clienttest.Server, document string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	require.NoError(t, err)
	resp, err := http.Post(server.URL+"/graphql", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	require.NoError(t, err)
	return strings.TrimSpace(text.String())
}

func TestAnswersAreShapedByTheSDLInTheOrderAsked(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("app", func(call clienttest.Call) (any, error) {
		return clienttest.Object{"slug": call.Args["slug"],
			"activeManifest": clienttest.Object{"version": "1.0.0"}}, nil
	})
	answer := post(
		t,
		server,
		`{ app(slug: "x") { summary called: slug activeManifest { stage version evidence components { key } } __typename } }`,
	)
	require.Equal(t, `{"data":{"app":{"summary":"","called":"x","activeManifest":`+
		`{"stage":"DRAFT","version":"1.0.0","evidence":null,"components":[]},"__typename":"App"}}}`, answer)
}

func TestWhatTheSDLDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.Handle("app", func(clienttest.Call) (any, error) { return clienttest.Object{"sluggish": "x"}, nil })
	require.Contains(t, post(t, server, `{ nothing }`), `"code":"DOCUMENT_INVALID"`)
	require.Contains(t, post(t, server, `{ app(slug: "x") { slug } }`), "App has no field sluggish")
	require.Contains(t, post(t, server, `{ viewer { actor { id } } }`), "the test gave no answer for viewer")
}

func TestSocketClosesAsTheProtocolSays(t *testing.T) {
	t.Parallel()
	const subscribe = `{"id":"1","type":"subscribe","payload":{"query":"subscription { nodeTasks { id } }"}}`
	for name, test := range map[string]struct {
		messages []string
		code     int
	}{
		"no initialisation":   {[]string{subscribe}, 4401},
		"a wrong credential":  {[]string{`{"type":"connection_init","payload":{"authorization":"Bearer no"}}`}, 4403},
		"initialised twice":   {[]string{good, `{"type":"connection_init"}`}, 4429},
		"an unknown message":  {[]string{good, `{"type":"start"}`}, 4400},
		"no JSON":             {[]string{good, `hello`}, 4400},
		"an id that is taken": {[]string{good, subscribe, subscribe}, 4409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clienttest.New(t, schemaFiles)
			server.RequireToken("yes")
			server.HandleStream("nodeTasks", func(call clienttest.Call, _ func(any) error) error {
				<-call.Context.Done()
				return nil
			})
			require.Equal(t, test.code, closeCode(t, server, test.messages))
		})
	}
}

const good = `{"type":"connection_init","payload":{"authorization":"Bearer yes"}}`

// closeCode sends the messages and reads until the server closes.
func closeCode(t *testing.T, server *clienttest.Server, messages []string) int {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, resp, err := dialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/graphql", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	defer conn.Close()
	for _, message := range messages {
		require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(message)))
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			require.ErrorAs(t, err, &closed)
			return closed.Code
		}
	}
}
