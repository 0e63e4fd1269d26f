package graph_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// watch opens a socket as the holder of the token and watches the bench's operation.
func (b *wholeBench) watch(token string) *socket {
	b.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{wsapi.Protocol}, HandshakeTimeout: 10 * time.Second}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http"),
		http.Header{"Authorization": {"Bearer " + token}})
	require.NoError(b.t, err)
	_ = response.Body.Close()
	b.t.Cleanup(func() { _ = conn.Close() })
	s := &socket{t: b.t, conn: conn}
	require.NoError(b.t, conn.WriteJSON(map[string]any{"type": "connection_init"}))
	require.Equal(b.t, "connection_ack", s.read().Type)
	document := `subscription($o: ID!) { operationProgress(operationId: $o) { state percent } }`
	require.NoError(b.t, conn.WriteJSON(map[string]any{"id": "1", "type": "subscribe",
		"payload": map[string]any{"query": document, "variables": map[string]any{"o": b.last.ID}}}))
	return s
}

// progress is the next state and percentage that comes.
func (s *socket) progress() (state string, percent int) {
	s.t.Helper()
	got := s.read()
	require.Equal(s.t, "next", got.Type, string(got.Payload))
	var content struct {
		Data struct {
			OperationProgress struct {
				State   string
				Percent int
			}
		}
	}
	require.NoError(s.t, json.Unmarshal(got.Payload, &content))
	return content.Data.OperationProgress.State, content.Data.OperationProgress.Percent
}

// change changes the operation as a worker does.
func (b *wholeBench) change(set string) {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		t.Wake(event.OperationTopic(b.last.ID))
		_, err := t.Exec(ctx, `UPDATE operation SET `+set+` WHERE id = $1`, b.last.ID)
		return err
	}))
}

func TestProgressIsTheStateNowThenEachChangeThenTheEnd(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	watchers := []*socket{b.watch(b.Session(b.viewer)), b.watch(b.Session(b.viewer))}
	expect := func(state string, percent int) {
		for _, s := range watchers {
			gotState, gotPercent := s.progress()
			require.Equal(t, []any{state, percent}, []any{gotState, gotPercent})
		}
	}
	expect("RUNNING", 0)
	b.change(`percent = 40`)
	expect("RUNNING", 40)
	b.change(`percent = 40`) // a wake-up without a change says nothing
	b.change(`percent = 70`)
	expect("RUNNING", 70)
	late := b.watch(b.Session(b.viewer))
	state, percent := late.progress()
	require.Equal(t, []any{"RUNNING", 70}, []any{state, percent})
	watchers = append(watchers, late)
	b.change(`state = 'SUCCEEDED', percent = 100, ended_at = now()`)
	expect("SUCCEEDED", 100)
	after := b.watch(b.Session(b.viewer)) // one that comes after the end
	state, percent = after.progress()
	require.Equal(t, []any{"SUCCEEDED", 100}, []any{state, percent})
	for _, s := range append(watchers, after) {
		require.Equal(t, "complete", s.read().Type)
	}
}

func TestProgressEndsWithItsCodeWhenTheRightIsGone(t *testing.T) {
	t.Parallel()
	b := newWholeBench(t)
	stranger := b.watch(b.Session(b.User(b.Tenant()))).read()
	require.Equal(t, "error", stranger.Type)
	require.Contains(t, string(stranger.Payload), `"code":"NOT_FOUND"`)
	watching := b.watch(b.Session(b.viewer))
	watching.progress()
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, b.viewer.ID)
	got := watching.read()
	require.Equal(t, "error", got.Type)
	require.Contains(t, string(got.Payload), `"code":"PERMISSION_REVOKED"`)
}
