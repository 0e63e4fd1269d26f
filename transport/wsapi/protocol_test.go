package wsapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/wsapi"
)

func TestQueryAndMutationAnswerOnceThenComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"q","type":"subscribe","payload":{"query":"{ hello }"}}`)
	require.JSONEq(t, `{"id":"q","type":"next","payload":{"data":{"hello":"hello"}}}`, c.receive())
	require.JSONEq(t, `{"id":"q","type":"complete"}`, c.receive())
	c.send(
		`{"id":"m","type":"subscribe","payload":{"query":"mutation($id: ID!) { touch(id: $id) { id name } }","variables":{"id":"7"}}}`)
	require.JSONEq(t, `{"id":"m","type":"next","payload":{"data":{"touch":{"id":"7","name":"touched"}}}}`, c.receive())
	require.JSONEq(t, `{"id":"m","type":"complete"}`, c.receive())
}

func TestSubscriptionSendsEachEventInOrderThenComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"s","type":"subscribe","payload":{"query":"subscription { count(to: 200) }"}}`)
	for i := 1; i <= 200; i++ {
		require.JSONEq(t, fmt.Sprintf(`{"id":"s","type":"next","payload":{"data":{"count":%d}}}`, i), c.receive())
	}
	require.JSONEq(t, `{"id":"s","type":"complete"}`, c.receive())
}

func TestMalformedMessagesCloseWith4400(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, text := range []string{
		`not json`, ``, `5`, `null`, `[]`, `[{"type":"ping"}]`, `{}`, `{"type":null}`, `{"type":1}`, `{"type":""}`,
		`{"type":"nope"}`, `{"type":"connection_ack"}`, `{"type":"start","id":"1"}`, `{"type":"connection_terminate"}`,
		`{"id":"1","type":"next","payload":{}}`, `{"id":"1","type":"error","payload":[]}`,
		`{"type":"ping"} trailing`, `{"type":"ping","payload":"text"}`, `{"type":"pong","payload":[1]}`,
		`{"type":"subscribe","payload":{"query":"{ hello }"}}`,
		`{"id":"","type":"subscribe","payload":{"query":"{ hello }"}}`,
		`{"id":7,"type":"subscribe","payload":{"query":"{ hello }"}}`,
		`{"id":null,"type":"subscribe","payload":{"query":"{ hello }"}}`,
		`{"id":"` + strings.Repeat("x", 257) + `","type":"subscribe","payload":{"query":"{ hello }"}}`,
		`{"id":"1","type":"subscribe"}`, `{"id":"1","type":"subscribe","payload":null}`,
		`{"id":"1","type":"subscribe","payload":{}}`, `{"id":"1","type":"subscribe","payload":"{ hello }"}`,
		`{"id":"1","type":"subscribe","payload":{"query":7}}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{ hello }","variables":[]}}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{ hello }","operationName":{}}}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{ hello }","extensions":5}}`,
		`{"type":"complete"}`, `{"id":"","type":"complete"}`, `{"id":[],"type":"complete"}`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c := b.connect(t)
			c.send(text)
			require.Equal(t, wsapi.CloseBadRequest, c.closed().Code)
		})
	}
	t.Run("binary", func(t *testing.T) {
		t.Parallel()
		c := b.connect(t)
		require.NoError(t, c.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"ping"}`)))
		require.Equal(t, wsapi.CloseBadRequest, c.closed().Code)
	})
}

func TestMessageSizeIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.MessageBytes = 1000 })
	ping := func(size int) string {
		return `{"type":"ping","payload":{"x":"` + strings.Repeat("x",
			size-len(`{"type":"ping","payload":{"x":""}}`)) + `"}}`
	}
	c := b.connect(t)
	c.send(ping(1000))
	require.Len(t, c.receive(), 1000)
	c.send(ping(1001))
	require.Equal(t, wsapi.CloseTooBig, c.closed().Code)
}

func TestPingIsAnsweredWithItsPayload(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"type":"ping"}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
	c.send(`{"type":"ping","payload":{"n":1}}`)
	require.JSONEq(t, `{"type":"pong","payload":{"n":1}}`, c.receive())
	c.send(`{"type":"ping","payload":null}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
}

func TestDuplicateIDClosesWith4409(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"one","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
	c.send(`{"id":"one","type":"subscribe","payload":{"query":"{ hello }"}}`)
	closed := c.closed()
	require.Equal(t, wsapi.CloseDuplicateID, closed.Code)
	require.Equal(t, "Subscriber for one already exists", closed.Text)
}

func TestIDIsFreeAgainOnceItsOperationHasEnded(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	for range 50 {
		c.send(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`)
		require.Equal(t, "next", c.message().Type)
		require.Equal(t, "complete", c.message().Type)
	}
	c.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
	c.send(`{"id":"1","type":"complete"}`)
	c.send(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`)
	require.Equal(t, "next", c.message().Type)
}

func TestCompleteStopsTheOperationAndNothingFollows(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	c := b.connect(t)
	for _, query := range []string{"subscription { silence }", "{ slow }"} {
		c.send(`{"id":"1","type":"subscribe","payload":{"query":"` + query + `"}}`)
		<-b.schema.Entered
		c.send(`{"id":"1","type":"complete"}`)
		<-b.schema.Left
		c.send(`{"type":"ping"}`)
		require.JSONEq(t, `{"type":"pong"}`, c.receive())
	}
	c.send(`{"id":"unknown","type":"complete"}`)
	c.send(`{"type":"ping"}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
}

func TestErrorEndsTheOperationWithoutComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	for name, want := range map[string]struct{ query, code string }{
		"syntax":              {`{ hello `, "DOCUMENT_INVALID"},
		"validation":          {`{ nope }`, "DOCUMENT_INVALID"},
		"variables":           {`query($n: [Int!]!) { hello }`, "DOCUMENT_INVALID"},
		"missing variable":    {`query($n: String!) { hello(name: $n) }`, "INVALID_ARGUMENT"},
		"subscription failed": {`subscription { refused }`, "CONFLICT"},
		"unknown failure":     {`subscription { topic(name: \"x\") }`, "INTERNAL"},
		"two roots":           {`subscription { refused silence }`, "DOCUMENT_INVALID"},
	} {
		c.send(`{"id":"` + name + `","type":"subscribe","payload":{"query":"` + want.query + `"}}`)
		m := c.message()
		require.Equal(t, "error", m.Type, name)
		require.Equal(t, name, m.ID)
		var errs []struct {
			Message    string
			Extensions map[string]any
		}
		require.NoError(t, json.Unmarshal(m.Payload, &errs), "the payload is a list of errors")
		require.Equal(t, want.code, errs[0].Extensions["code"], errs[0].Message)
		require.NotEmpty(t, errs[0].Extensions["correlation_id"])
		require.Contains(t, errs[0].Extensions, "retryable")
		require.Contains(t, errs[0].Extensions, "reasons")
		c.send(`{"type":"ping"}`)
		require.JSONEq(t, `{"type":"pong"}`, c.receive(), "nothing follows an error")
	}
}

func TestExecutionErrorComesAsNextThenComplete(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	for how, code := range map[string]string{"KNOWN": "CONFLICT", "UNKNOWN": "INTERNAL", "PANIC": "INTERNAL"} {
		c.send(`{"id":"1","type":"subscribe","payload":{"query":"{ fail(how: ` + how + `) }"}}`)
		text := c.receive()
		require.Contains(t, text, `"type":"next"`)
		require.Contains(t, text, `"data":{"fail":null}`)
		require.Contains(t, text, `"code":"`+code+`"`)
		require.NotContains(t, text, "secret")
		require.JSONEq(t, `{"id":"1","type":"complete"}`, c.receive())
	}
}

func TestOperationsOfASocketAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.Operations = 2 })
	c := b.connect(t)
	subscribe := func(id string) {
		c.send(`{"id":"` + id + `","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
	}
	subscribe("1")
	subscribe("2")
	<-b.schema.Entered
	<-b.schema.Entered
	subscribe("3")
	m := c.message()
	require.Equal(t, "error", m.Type)
	require.Equal(t, "3", m.ID)
	require.Contains(t, string(m.Payload), `"LIMIT_EXCEEDED"`)
	c.send(`{"id":"1","type":"complete"}`)
	subscribe("4")
	<-b.schema.Entered // the place is free again
}

func TestEachOperationHasACorrelationIDOfItsOwn(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	seen := map[string]bool{}
	for range 3 {
		c.send(`{"id":"1","type":"subscribe","payload":{"query":"{ correlation }"}}`)
		seen[data(t, c.message().Payload)] = true
		require.Equal(t, "complete", c.message().Type)
	}
	require.Len(t, seen, 3)
	require.NotContains(t, seen, `{"correlation":""}`)
}

func TestOperationIDIsEscaped(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	c.send(`{"id":"a\"b\u0001é","type":"subscribe","payload":{"query":"{ hello }"}}`)
	require.Equal(t, "a\"b\u0001é", c.message().ID)
}
