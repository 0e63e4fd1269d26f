package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/reach"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// terminal opens a terminal as the console does; status is that of a refused handshake.
func (r *reachable) terminal(session string, opening map[string]any, headers ...string) (socket *websocket.Conn,
	status int) {
	r.t.Helper()
	header := http.Header{"Origin": {r.far.url}}
	if session != "" {
		header.Set("Cookie", "gpuaas_session="+session)
	}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{Subprotocols: []string{reach.TerminalProtocol}, HandshakeTimeout: patience}
	socket, response, err := dialer.DialContext(r.t.Context(), "ws"+strings.TrimPrefix(r.far.url, "http")+
		tunnel.ExecPath, header)
	require.NotNil(r.t, response, "%v", err)
	_ = response.Body.Close()
	if err != nil {
		return nil, response.StatusCode
	}
	r.t.Cleanup(func() { _ = socket.Close() })
	require.NoError(r.t, socket.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(r.t, socket.WriteJSON(opening))
	return socket, 0
}

// says reads the next message of a terminal: a text's code, or "opened"; else a frame.
func (r *reachable) says(socket *websocket.Conn) (text, message string, frame tunnel.Frame, carries []byte) {
	r.t.Helper()
	kind, body, err := socket.ReadMessage()
	require.NoError(r.t, err)
	if kind == websocket.BinaryMessage {
		return "", "", tunnel.Frame(body[0]), body[1:]
	}
	var said struct {
		Opened bool
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	require.NoError(r.t, json.Unmarshal(body, &said))
	if said.Opened {
		return "opened", "", 0, nil
	}
	return said.Errors[0].Extensions.Code, said.Errors[0].Message, 0, nil
}

// opensATerminal is what the console's terminal does, and what it is refused.
func (r *reachable) opensATerminal(member string) {
	t := r.t
	person := r.User(r.tenant)
	binding := r.Bind(person, platformtest.In(authz.ProjectAdmin, r.project))
	admin := r.Session(person)
	id := r.memberID()
	opening := func(change ...any) map[string]any {
		out := map[string]any{"member": id, "command": []string{"sh", "-c", "secret"}, "reason": "to look", "rows": 24,
			"cols": 80}
		for i := 0; i < len(change); i += 2 {
			out[change[i].(string)] = change[i+1]
		}
		return out
	}
	before := r.Count("audit_entry", "action = 'execMember' AND allowed")
	for name, headers := range map[string][]string{
		"another origin":  {"Origin", "https://evil.test"},
		"an app's origin": {"Origin", "http://" + host("web", r.instance.ID)},
		"no origin":       {"Origin", ""},
		"a sibling's":     {"Sec-Fetch-Site", "same-site"},
	} {
		_, status := r.terminal(admin, opening(), headers...)
		require.Equal(t, http.StatusForbidden, status, name)
	}
	for name, headers := range map[string][]string{"nobody": nil,
		"a program's token": {"Authorization", "Bearer " + admin}} {
		_, status := r.terminal("", opening(), headers...)
		require.Equal(t, http.StatusUnauthorized, status, name)
	}
	refused := func(session string, asked map[string]any, want fault.Code, reason string) {
		t.Helper()
		socket, status := r.terminal(session, asked)
		require.Zero(t, status)
		code, message, _, _ := r.says(socket)
		require.Equal(t, string(want), code, message)
		require.Contains(t, message, reason)
		_, _, err := socket.ReadMessage()
		require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)
	}
	refused(member, opening(), fault.Forbidden, "apps.member.exec")
	refused(r.Session(r.User(r.Tenant())), opening(), fault.NotFound, "")
	refused(admin, opening("reason", ""), fault.InvalidArgument, "reason")
	refused(admin, opening("command", []string{}), fault.InvalidArgument, "command")
	refused(admin, opening("rows", 5000), fault.InvalidArgument, "rows")
	refused(admin, opening("rows", "many"), fault.InvalidArgument, "opening")
	refused(admin, opening("member", ids.New(ids.Member)), fault.NotFound, "")
	r.Policy(r.project, `{"access": {"deny": ["EXEC"]}}`)
	refused(admin, opening(), fault.PolicyDenied, "EXEC")
	r.Policy(r.project, `{}`)
	r.SQL(`UPDATE member SET node_id = NULL WHERE id = $1`, id)
	refused(admin, opening(), fault.FailedPrecondition, "on no node")
	r.SQL(`UPDATE member SET node_id = $2 WHERE id = $1`, id, r.node.ID)
	require.Equal(t, before, r.Count("audit_entry", "action = 'execMember' AND allowed"), "nothing was opened")

	socket, _ := r.terminal(admin, opening())
	open, _, _, _ := r.says(socket)
	require.Equal(t, "opened", open)
	send := func(kind tunnel.Frame, carries []byte) {
		require.NoError(t, socket.WriteMessage(websocket.BinaryMessage, append([]byte{byte(kind)}, carries...)))
	}
	reads := func(want tunnel.Frame) string {
		t.Helper()
		text, message, frame, carries := r.says(socket)
		require.Empty(t, text, message)
		require.Equal(t, want, frame)
		return string(carries)
	}
	require.JSONEq(t, `{"command": ["sh", "-c", "secret"], "tty": true, "rows": 24, "cols": 80}`,
		reads(tunnel.ErrorOutput))
	send(tunnel.Input, []byte("hello"))
	require.Equal(t, "hello", reads(tunnel.Output))
	send(tunnel.Size, tunnel.SizeOf(30, 100))
	require.Equal(t, string(tunnel.SizeOf(30, 100)), reads(tunnel.Output), "the play echoes what it gets")
	send(tunnel.InputEnd, nil)
	require.Equal(t, 5, tunnel.ReadExit([]byte(reads(tunnel.Exit))))
	require.Equal(t, 1, r.Count("audit_entry", `action = 'execMember' AND allowed AND reason = 'to look'
		AND after ->> 'tty' = 'true' AND after::text NOT LIKE '%secret%' AND actor_id = $1`, person.ID))

	socket, _ = r.terminal(admin, opening())
	_, _, _, _ = r.says(socket)
	_ = reads(tunnel.ErrorOutput)
	send(tunnel.Output, nil)
	code, message, _, _ := r.says(socket)
	require.Equal(t, string(fault.InvalidArgument), code, message)

	socket, _ = r.terminal(admin, opening())
	_, _, _, _ = r.says(socket)
	_ = reads(tunnel.ErrorOutput)
	r.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, binding.ID)
	began := time.Now()
	code, message, _, _ = r.says(socket)
	require.Equal(t, string(fault.PermissionRevoked), code, message)
	require.Less(t, time.Since(began), 5*time.Second)
}
