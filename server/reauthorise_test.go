package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// endsWithin is how soon what rests on a right that has ended must end: 5 s, with a margin for a busy machine.
const endsWithin = 8 * time.Second

// The live documents, each with the variables it needs.
const (
	timelineDocument = `subscription($id: ID!) { instanceTimeline(instanceId: $id) { id } }`
	activityDocument = `subscription($id: ID!) { projectActivity(projectId: $id) { id } }`
	progressDocument = `subscription($id: ID!) { operationProgress(operationId: $id) { id } }`
	tasksDocument    = `subscription { nodeTasks { id } }`
)

// listener is a subscription on a socket of its own.
type listener struct {
	name   string
	socket *websocket.Conn

	mu     sync.Mutex
	events int
	code   string // of the subscription's end
	closed int    // the socket's close code
}

// listen opens a socket and subscribes.
func (b *bench) listen(name, token, document string, id any) *listener {
	b.t.Helper()
	l := b.dialled(nil, token, document, id)
	l.name = name
	return l
}

// dialled is listen with a configuration of TLS; nil for none.
func (b *bench) dialled(config *tls.Config, token, document string, id any) *listener {
	b.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{wsapi.Protocol}, HandshakeTimeout: patience,
		TLSClientConfig: config}
	socket, response, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http")+"/graphql", nil)
	require.NoError(b.t, err)
	_ = response.Body.Close()
	b.t.Cleanup(func() { _ = socket.Close() })
	l := &listener{socket: socket}
	hello, err := json.Marshal(map[string]string{"authorization": "Bearer " + token})
	require.NoError(b.t, err)
	subscribe, err := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"id": id}})
	require.NoError(b.t, err)
	require.NoError(b.t, socket.WriteJSON(frame{Type: "connection_init", Payload: hello}))
	go l.run(subscribe)
	return l
}

func (l *listener) run(subscribe json.RawMessage) {
	for {
		var in frame
		err := l.socket.ReadJSON(&in)
		l.mu.Lock()
		var closed *websocket.CloseError
		switch {
		case err != nil:
			l.closed = -1
			if errors.As(err, &closed) {
				l.closed = closed.Code
			}
		case in.Type == "connection_ack":
			_ = l.socket.WriteJSON(frame{ID: "1", Type: "subscribe", Payload: subscribe})
		case in.Type == "ping":
			_ = l.socket.WriteJSON(frame{Type: "pong"})
		case in.Type == "next":
			l.events++
		case in.Type == "error":
			var got answer
			got.take(fmt.Appendf(nil, `{"errors":%s}`, in.Payload))
			l.code = got.code()
		}
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (l *listener) state() (events int, code string, closed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events, l.code, l.closed
}

// happen writes events of the house's instance until every listener has received one.
func (b *bench) happen(h *house, heard ...*listener) {
	b.t.Helper()
	row, err := b.Ent.Instance.Get(b.t.Context(), h.Instance)
	require.NoError(b.t, err)
	admin := b.With(h.admin)
	require.Eventually(b.t, func() bool {
		err := b.DB.Write(admin, func(ctx context.Context, t *tx.Tx) error {
			row := *row
			return event.Append(ctx, t, &row, event.Draft{Type: lifecycle.EventInstanceHealthy, Message: "well"})
		})
		require.NoError(b.t, err)
		for _, l := range heard {
			if events, code, closed := l.state(); events == 0 {
				require.Empty(b.t, code, l.name)
				require.Zero(b.t, closed, l.name)
				return false
			}
		}
		return true
	}, patience, 100*time.Millisecond)
}

// over waits until every listener's subscription ended with the code, or its socket with 4403 when the code is empty.
func over(t *testing.T, by time.Time, code fault.Code, all ...*listener) {
	t.Helper()
	for _, l := range all {
		require.Eventually(t, func() bool {
			_, ended, closed := l.state()
			if code == "" {
				return closed == wsapi.CloseForbidden
			}
			return ended == string(code)
		}, time.Until(by), 10*time.Millisecond, "%s: %+v", l.name, l)
	}
}

func TestWhateverTakesARightAwayEndsWhatRestsOnIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, gone := b.build(), b.build()
	tenant, err := b.Ent.Tenant.Get(t.Context(), h.Tenant)
	require.NoError(t, err)
	viewer := func() (id string, session string) {
		user := b.Kit.User(tenant, platformtest.In(authz.ProjectViewer, h.project))
		return string(user.ID), b.Session(user)
	}
	three := func(name, token string, of *house) []*listener {
		return []*listener{b.listen(name+", timeline", token, timelineDocument, of.Instance),
			b.listen(name+", activity", token, activityDocument, of.Project),
			b.listen(name+", progress", token, progressDocument, of.Operation)}
	}
	leaver, leaverSession := viewer()
	passing, passingSession := viewer()
	loggedOut, loggedOutSession := viewer()
	disabled, disabledSession := viewer()
	account, key := b.ServiceAccount(h.project, authz.AppsInstanceRead, authz.OperationRead)
	lesser, lesserKey := b.ServiceAccount(h.project, authz.AppsInstanceRead, authz.OperationRead)
	deleted, deletedKey := b.ServiceAccount(h.project, authz.AppsInstanceRead, authz.OperationRead)
	revoked := map[string][]*listener{
		"a binding that was revoked": three("a binding that was revoked", leaverSession, h),
		"a binding that ended":       three("a binding that ended", passingSession, h),
		"a shorter allow-list":       three("a shorter allow-list", lesserKey, h),
	}
	theirs, err := b.Ent.Tenant.Get(t.Context(), gone.Tenant)
	require.NoError(t, err)
	goneAdmin := b.Kit.User(theirs, platformtest.In(authz.ProjectAdmin, gone.project))
	revoked["a deleted project"] = three("a deleted project", b.Session(goneAdmin), gone)
	shut := map[string][]*listener{
		"a session that was revoked":  three("a session that was revoked", loggedOutSession, h),
		"a person who was disabled":   three("a person who was disabled", disabledSession, h),
		"a key that was revoked":      three("a key that was revoked", key, h),
		"an account that was deleted": three("an account that was deleted", deletedKey, h),
		"a deleted project's key":     three("a deleted project's key", gone.robot, gone),
		"a node that was retired":     {b.listen("a node that was retired", h.node, tasksDocument, nil)},
		"a node's credential":         {b.listen("a node's credential", gone.node, tasksDocument, nil)},
		"an operation that ended": {b.listen("an operation that ended", gone.token, timelineDocument,
			gone.Instance)},
	}
	stays := three("who stays", h.admin, h)
	b.happen(h, join(stays, revoked["a binding that was revoked"], revoked["a binding that ended"],
		revoked["a shorter allow-list"],
		shut["a session that was revoked"], shut["a person who was disabled"], shut["a key that was revoked"],
		shut["an account that was deleted"],
		shut["a node that was retired"], shut["a node's credential"])...)
	b.happen(gone, join(revoked["a deleted project"], shut["a deleted project's key"],
		shut["an operation that ended"])...)

	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, leaver)
	b.SQL(`UPDATE role_binding SET expires_at = now() WHERE user_id = $1`, passing)
	b.SQL(`UPDATE service_account SET permission_keys = '["allocation.read"]' WHERE id = $1`, lesser.ID)
	b.SQL(`UPDATE session SET revoked_at = now() WHERE user_id = $1`, loggedOut)
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled)
	b.SQL(`UPDATE service_account_key SET revoked_at = now() WHERE service_account_id = $1`, account.ID)
	b.SQL(`UPDATE service_account SET deleted_at = now() WHERE id = $1`, deleted.ID)
	b.SQL(`UPDATE compute_node SET status = 'RETIRED' WHERE id = $1`, h.Node)
	b.SQL(`UPDATE node_credential SET revoked_at = now() WHERE node_id = $1`, gone.Node)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, gone.Operation)
	b.SQL(fmt.Sprintf(`BEGIN; SET LOCAL SESSION AUTHORIZATION app_operator;
		SELECT platform.delete_project('%s', 'usr_x', 'over'); COMMIT`, gone.Project))
	by := time.Now().Add(endsWithin)
	for _, all := range revoked {
		for _, l := range all {
			if strings.HasPrefix(l.name, "a deleted project, progress") {
				continue // its operation had ended, and with it the subscription
			}
			over(t, by, fault.PermissionRevoked, l)
		}
	}
	for _, all := range shut {
		over(t, by, "", all...)
	}
	for _, l := range stays {
		_, code, closed := l.state()
		require.Empty(t, code, l.name)
		require.Zero(t, closed, l.name)
	}
}

func join(groups ...[]*listener) (all []*listener) {
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}
