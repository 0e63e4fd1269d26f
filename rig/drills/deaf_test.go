package drills_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// narrow is how much a subscriber's side of its connection keeps, in bytes.
	narrow = 4 << 10
	// burst is more events than a connection and the server's queue for it hold, of burstBytes each.
	burst, burstBytes = 6_000, 2_000
)

// subscriber is a client that is not the SDK's: it reads only when a drill has it read, and does not resume by itself.
type subscriber struct {
	*websocket.Conn
}

// subscribes opens an instance's timeline after a cursor.
func (w *ward) subscribes(secret, instance, after string) subscriber {
	w.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: soon,
		NetDialContext: (&net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, narrow)
			})
		}}).DialContext}
	connection, answer, err := dialer.DialContext(w.ctx, "ws"+strings.TrimPrefix(shared.URL, "http")+"/graphql",
		http.Header{"Authorization": {"Bearer " + secret}})
	w.fine(err)
	_ = answer.Body.Close()
	w.t.Cleanup(func() { _ = connection.Close() })
	s := subscriber{connection}
	w.fine(s.WriteJSON(map[string]any{"type": "connection_init"}))
	got, err := s.reads()
	w.fine(err)
	require.Equal(w.t, "connection_ack", got.Type)
	w.fine(s.WriteJSON(map[string]any{"type": "subscribe", "id": "1", "payload": map[string]any{
		"query": `subscription ($instance: ID!, $after: String) {
			instanceTimeline(instanceId: $instance, after: $after) { seq message } }`,
		"variables": map[string]any{"instance": instance, "after": after}}}))
	return s
}

// frame is a message of the protocol with an event.
type frame struct {
	Type    string
	Payload struct {
		Data struct{ InstanceTimeline struct{ Seq int } }
	}
}

// reads takes the next message; errors in its payload do not concern the drill.
func (s subscriber) reads() (frame, error) {
	var got frame
	if err := s.SetReadDeadline(time.Now().Add(soon)); err != nil {
		return got, err
	}
	_, content, err := s.ReadMessage()
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(content, &got)
}

// until reads up to an event, or to what the feed ends with.
func (s subscriber) until(seq int) error {
	for {
		got, err := s.reads()
		if err != nil || got.Payload.Data.InstanceTimeline.Seq >= seq {
			return err
		}
	}
}

// happens adds events to an instance's timeline as no instance of one member has them, and returns the last one's
// number.
func (w *ward) happens(instance string, count int) (last int) {
	w.t.Helper()
	w.tamper(`INSERT INTO app_instance_event SELECT r.* FROM app_instance_event e, generate_series(1, $2::int) n,
		jsonb_populate_record(e, jsonb_build_object('id', 'evt_drill' || e.seq || 'x' || n, 'seq', e.seq + n,
			'xid', pg_current_xact_id()::text::bigint, 'position', nextval('event_position'), 'message', repeat('x', $3::int))) r
		WHERE e.instance_id = $1 AND e.seq = (SELECT max(seq) FROM app_instance_event
		WHERE instance_id = $1)`, instance,
		count, burstBytes)
	w.fine(w.connect().QueryRow(w.ctx, `SELECT max(seq) FROM app_instance_event WHERE instance_id = $1`,
		instance).Scan(&last))
	return last
}

// slowConsumer has a subscriber read nothing while more happens than is kept for it.
var slowConsumer = drill{
	fault: func(w *ward) {
		instance := w.running()
		account, caller := w.account("project.read", "apps.instance.read")
		key, err := gql.CreateServiceAccountKey(w.ctx, w.admin,
			gql.CreateServiceAccountKeyInput{ServiceAccountId: account})
		w.fine(err)
		secret, cursor := key.CreateServiceAccountKey.Secret, w.cursor(instance)
		w.later(func(ctx context.Context) {
			w.ctx = ctx
			w.tamper(`DELETE FROM app_instance_event WHERE instance_id = $1 AND id LIKE 'evt_drill%'`, instance)
		})
		deaf, other := w.subscribes(secret, instance, cursor), w.subscribes(secret, instance, cursor)
		for range 2 { // both are live then
			seq := w.happens(instance, 1)
			w.fine(deaf.until(seq))
			w.fine(other.until(seq))
		}
		_ = other.until(w.happens(instance, burst)) // or it is cut off as well
		end := deaf.until(burst * 2)
		var closed *websocket.CloseError
		require.True(w.t, errors.As(end, &closed), "the feed ends with %v", end)
		code, _, _ := strings.Cut(closed.Text, ":")
		w.about.Feed = &client.Error{Code: code, Message: closed.Text, Retryable: true, CloseCode: closed.Code}
		w.mend = func() { w.about.Feed = w.once(caller, instance, cursor) }
	},
	cure: func(w *ward) { w.mend() },
}
