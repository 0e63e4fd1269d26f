package wsapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

func TestSubprotocolIsNegotiated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t) // Run has begun
	for name, offer := range map[string][]string{"none": nil, "legacy": {"graphql-ws"}, "unknown": {"soap", "mqtt"}} {
		t.Run(name+" is closed with 4406", func(t *testing.T) {
			conn, _, err := (&websocket.Dialer{Subprotocols: offer}).Dial(b.url(), nil)
			require.NoError(t, err)
			defer conn.Close()
			require.Equal(t, wsapi.CloseBadProtocol, (&client{conn, t}).closed().Code)
		})
	}
	t.Run("ours is picked among several", func(t *testing.T) {
		conn, _, err := (&websocket.Dialer{Subprotocols: []string{"graphql-ws", "graphql-transport-ws"}}).
			Dial(b.url(), nil)
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, "graphql-transport-ws", conn.Subprotocol())
		c := &client{conn, t}
		c.send(`{"type":"connection_init"}`)
		require.JSONEq(t, `{"type":"connection_ack"}`, c.receive())
	})
}

func TestOriginIsCheckedBeforeTheUpgrade(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.Origins = []string{"https://console.example:8443"} })
	b.connect(t)
	host := strings.TrimPrefix(b.http.URL, "http://")
	for origin, status := range map[string]int{
		"http://" + host: 101, "https://console.example:8443": 101, "": 101,
		"https://evil.example": 403, "null": 403, "https://console.example": 403,
		"http://" + host + ".evil.example": 403,
		"::":                               403,
	} {
		t.Run(origin, func(t *testing.T) {
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			conn, response, err := websocket.DefaultDialer.Dial(b.url(), header)
			require.Equal(t, status, response.StatusCode, err)
			if err == nil {
				conn.Close()
				return
			}
			require.Equal(t, "FORBIDDEN", envelope(t, response))
		})
	}
}

func envelope(t *testing.T, response *http.Response) (code string) {
	t.Helper()
	var body struct {
		Errors []struct{ Extensions map[string]any }
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
	require.Len(t, body.Errors, 1)
	require.NotEmpty(t, body.Errors[0].Extensions["correlation_id"])
	return body.Errors[0].Extensions["code"].(string)
}

func TestMalformedHandshakeIsRefusedInTheEnvelope(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	request, err := http.NewRequest(http.MethodGet, b.http.URL, nil)
	require.NoError(t, err)
	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "X-Correlation-Id": {"mine-1"}}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Equal(t, "mine-1", response.Header.Get("X-Correlation-ID"))
	require.Equal(t, "INVALID_ARGUMENT", envelope(t, response))
}

func TestUpgradeReturnsTheCorrelationID(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	for given, want := range map[string]string{"trace-7": "trace-7", "no spaces!": ""} {
		_, response, err := websocket.DefaultDialer.Dial(b.url(), http.Header{"X-Correlation-Id": {given}})
		require.NoError(t, err)
		got := response.Header.Get("X-Correlation-ID")
		if want != "" {
			require.Equal(t, want, got)
		}
		require.True(t, transport.ValidCorrelationID(got))
	}
}

func TestInitTimeoutClosesWith4408(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.InitTimeout = 30 * time.Millisecond })
	closed := b.dial(t, nil).closed()
	require.Equal(t, wsapi.CloseInitTimeout, closed.Code)
	require.Equal(t, "Connection initialisation timeout", closed.Text)
}

func TestCredentialCheckThatHangsIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) {
		o.InitTimeout, o.Authenticate = 100*time.Millisecond, held(nil)
	})
	c := b.dial(t, nil)
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, wsapi.CloseTryAgain, c.closed().Code)
}

func TestInitPayloadMustBeAnObject(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, payload := range []string{`"text"`, `5`, `true`, `[]`, `[{"authorization":"Bearer x"}]`} {
		c := b.dial(t, nil)
		c.send(`{"type":"connection_init","payload":` + payload + `}`)
		require.Equal(t, wsapi.CloseBadRequest, c.closed().Code, payload)
	}
	for _, payload := range []string{`null`, `{}`, `{"other":1}`} {
		c := b.dial(t, nil)
		c.send(`{"type":"connection_init","payload":` + payload + `}`)
		require.JSONEq(t, `{"type":"connection_ack"}`, c.receive(), payload)
	}
}

func TestSecondInitClosesWith4429(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	c := b.connect(t)
	c.send(`{"type":"connection_init"}`)
	closed := c.closed()
	require.Equal(t, wsapi.CloseTooManyInits, closed.Code)
	require.Equal(t, "Too many initialisation requests", closed.Text)
}

// held returns an Authenticate that waits until it is let go, or the socket has closed.
func held(letGo <-chan struct{}) func(context.Context, transport.Credential, *http.Request) (context.Context, error) {
	return func(ctx context.Context, _ transport.Credential, _ *http.Request) (context.Context, error) {
		select {
		case <-letGo:
			return ctx, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	letGo := make(chan struct{})
	b := setup(t, func(o *wsapi.Options) { o.Authenticate = held(letGo) })
	const subscribe = `{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`
	t.Run("subscribe without init closes with 4401", func(t *testing.T) {
		c := b.dial(t, nil)
		c.send(subscribe)
		require.Equal(t, wsapi.CloseUnauthorized, c.closed().Code)
	})
	t.Run("subscribe while the credential is checked closes with 4401", func(t *testing.T) {
		c := b.dial(t, nil)
		c.send(`{"type":"connection_init"}`)
		c.send(subscribe)
		require.Equal(t, wsapi.CloseUnauthorized, c.closed().Code)
	})
	t.Run("a second init while the credential is checked closes with 4429", func(t *testing.T) {
		c := b.dial(t, nil)
		c.send(`{"type":"connection_init"}`)
		c.send(`{"type":"connection_init"}`)
		require.Equal(t, wsapi.CloseTooManyInits, c.closed().Code)
	})
	t.Run("ping is answered, complete and pong are taken", func(t *testing.T) {
		c := b.dial(t, nil)
		c.send(`{"id":"1","type":"complete"}`)
		c.send(`{"type":"pong"}`)
		c.send(`{"type":"ping"}`)
		require.JSONEq(t, `{"type":"pong"}`, c.receive())
		close(letGo)
		c.send(`{"type":"connection_init"}`)
		require.JSONEq(t, `{"type":"connection_ack"}`, c.receive())
	})
}

func TestCredentialDecidesTheCloseCode(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	same := b.http.URL
	for name, c := range map[string]struct {
		header  http.Header
		payload string
		code    int
	}{
		"unknown token in init":       {nil, `{"authorization":"Bearer bad"}`, wsapi.CloseForbidden},
		"unknown token in the header": {http.Header{"Authorization": {"Bearer bad"}}, `{}`, wsapi.CloseForbidden},
		"init that is not Bearer":     {nil, `{"authorization":"Basic Zm9v"}`, wsapi.CloseUnauthorized},
		"init that is not text":       {nil, `{"authorization":7}`, wsapi.CloseUnauthorized},
		"header that is not Bearer":   {http.Header{"Authorization": {"Basic Zm9v"}}, `{}`, wsapi.CloseUnauthorized},
		"forbidden":                   {nil, `{"authorization":"Bearer forbidden"}`, wsapi.CloseForbidden},
		"cannot be checked now":       {nil, `{"authorization":"Bearer unavailable"}`, wsapi.CloseTryAgain},
		"a panic":                     {nil, `{"authorization":"Bearer panic"}`, wsapi.CloseInternal},
		"cookie without origin":       {http.Header{"Cookie": {"gpuaas_session=s"}}, `{}`, wsapi.CloseForbidden},
		"bad cookie of our own page": {http.Header{"Cookie": {"gpuaas_session=bad"}, "Origin": {same}}, `{}`,
			wsapi.CloseForbidden},
		"two Authorization headers": {http.Header{"Authorization": {"Bearer a", "Bearer b"}}, `{}`,
			wsapi.CloseUnauthorized},
		"two session cookies": {http.Header{"Cookie": {"gpuaas_session=a; gpuaas_session=b"}, "Origin": {same}},
			`{}`, wsapi.CloseUnauthorized},
		"bad header beside good cookie": {http.Header{"Cookie": {"gpuaas_session=a"}, "Authorization": {"x"},
			"Origin": {same}}, `{}`, wsapi.CloseUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := b.dial(t, c.header)
			conn.send(`{"type":"connection_init","payload":` + c.payload + `}`)
			closed := conn.closed()
			require.Equal(t, c.code, closed.Code, closed.Text)
			require.NotContains(t, closed.Text, "secret")
		})
	}
}

func TestCredentialIsTakenFromInitThenHeaderThenCookie(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	for name, c := range map[string]struct {
		header       http.Header
		payload, who string
	}{
		"nothing": {nil, `{}`, ":"},
		"header":  {http.Header{"Authorization": {"bearer h"}}, `{}`, "bearer:h"},
		"cookie":  {http.Header{"Cookie": {"gpuaas_session=c"}, "Origin": {b.http.URL}}, `{}`, "cookie:c"},
		"init":    {http.Header{"Authorization": {"Bearer h"}}, `{"authorization":"Bearer i"}`, "init:i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := b.dial(t, c.header)
			conn.send(`{"type":"connection_init","payload":` + c.payload + `}`)
			require.JSONEq(t, `{"type":"connection_ack"}`, conn.receive())
			conn.send(`{"id":"1","type":"subscribe","payload":{"query":"{ whoami }"}}`)
			require.JSONEq(t, `{"whoami":"`+c.who+`"}`, data(t, conn.message().Payload))
		})
	}
}

func data(t *testing.T, payload json.RawMessage) string {
	t.Helper()
	var response struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal(payload, &response))
	return string(response.Data)
}

func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, b *bench) {
		t.Helper()
		_, response, err := websocket.DefaultDialer.Dial(b.url(), nil)
		require.Error(t, err)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		require.Equal(t, "UNAVAILABLE", envelope(t, response))
	}
	t.Run("in all", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(o *wsapi.Options) { o.Sockets = 2 })
		first := b.connect(t)
		b.connect(t)
		refused(t, b)
		first.Close()
		b.connect(t) // the place is free again
	})
	t.Run("while they wait for a credential", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(o *wsapi.Options) { o.PendingSockets = 1 })
		b.connect(t)
		waiting := b.dial(t, nil)
		refused(t, b)
		waiting.Close()
		b.connect(t)
	})
	t.Run("by subject", func(t *testing.T) {
		t.Parallel()
		b := setup(t, func(o *wsapi.Options) { o.SubjectSockets, o.Subject = 1, testschema.Caller })
		first := b.connect(t)
		over := b.dial(t, nil)
		over.send(`{"type":"connection_init"}`)
		require.Equal(t, wsapi.CloseTooManySockets, over.closed().Code)
		other := b.dial(t, http.Header{"Authorization": {"Bearer other"}})
		other.send(`{"type":"connection_init"}`)
		require.JSONEq(t, `{"type":"connection_ack"}`, other.receive())
		first.Close()
		require.Eventually(t, func() bool { return b.server.Sockets() == 1 }, patience, time.Millisecond)
		b.connect(t)
	})
}
