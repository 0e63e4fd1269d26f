package platform_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// keeper is a credential that remembers how it fared.
type keeper struct {
	mu                sync.Mutex
	accepted, refused int
}

func (k *keeper) Token() string { return "gpu_nod_x" }
func (k *keeper) Accepted(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.accepted++
}

func (k *keeper) Refused(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused++
}

func serve(t *testing.T, handler http.HandlerFunc) *platform.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := platform.NewClient(server.URL, nil)
	require.NoError(t, err)
	return c
}

func TestAnswersBecomeTypedErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		body      string
		code      string
		permanent bool
		refused   int
	}{
		{200, `{"errors":[{"message":"m","extensions":{"code":"STALE_FENCE","correlation_id":"c"}}]}`,
			"STALE_FENCE", true, 0},
		{200, `{"errors":[{"message":"m","extensions":{"code":"UNAUTHENTICATED"}}]}`, "UNAUTHENTICATED", false, 1},
		{200, `{"errors":[{"message":"m","extensions":{"code":"CONFLICT","retryable":true}}]}`, "CONFLICT", false, 0},
		{200, `{"errors":[{"message":"m","extensions":{"code":"INTERNAL"}}]}`, "INTERNAL", false, 0},
		{401, ``, "UNAUTHENTICATED", false, 1},
		{200, `{"errors":[{"message":"m","extensions":{"code":"TOKEN_EXPIRED"}}]}`, "TOKEN_EXPIRED", false, 1},
		{200, `{"errors":[{"message":"m","extensions":{"code":"NOT_FOUND"}}]}`, "NOT_FOUND", true, 0},
		{404, `nothing here`, "NOT_FOUND", false, 0},
		{413, `too large`, "MESSAGE_TOO_LARGE", true, 0},
		{502, `<html>`, "UNAVAILABLE", false, 0},
		{302, ``, "INTERNAL", false, 0},
		{200, `<html>`, "INTERNAL", false, 0},
	} {
		who := &keeper{}
		api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		err := api.Report(t.Context(), who, gql.ReportNodeTaskInput{})
		require.Equal(t, c.code, client.CodeOf(err), "%d %s: %v", c.status, c.body, err)
		require.Equal(t, c.permanent, platform.Permanent(err), "%d %s", c.status, c.body)
		require.Equal(t, c.refused, who.refused, "%d %s", c.status, c.body)
		require.Zero(t, who.accepted)
	}
}

func TestCredentialTravelsInTheHeaderOnly(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer gpu_nod_x" || strings.Contains(r.URL.String()+string(body),
			"gpu_nod_x") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, `{"data":{"appendNodeTaskOutput":7}}`)
	})
	who := &keeper{}
	next, err := api.Append(t.Context(), who, gql.AppendNodeTaskOutputInput{})
	require.NoError(t, err)
	require.Equal(t, 7, next)
	require.Equal(t, 1, who.accepted)
}

func TestAddressOfThePlatformIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "platform", "ftp://platform", "http://", "http://user:pass@platform",
		"http://platform?x=1"} {
		_, err := platform.NewClient(bad, nil)
		require.ErrorContains(t, err, "platform url", bad)
	}
	for _, good := range []string{"http://platform", "https://platform/", "https://platform/base/graphql"} {
		_, err := platform.NewClient(good, nil)
		require.NoError(t, err, good)
	}
}

// socket answers a subscription with the given messages and then closes with the code.
func socket(t *testing.T, code int, messages ...string) *platform.Client {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for _, message := range messages {
			if message == "" { // wait for what the agent says
				_, _, _ = conn.ReadMessage()
				continue
			}
			_ = conn.WriteMessage(websocket.TextMessage, []byte(message))
		}
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "over"),
			time.Now().Add(time.Second))
	})
}

const taskMessage = `{"id":"1","type":"next","payload":{"data":{"nodeTasks":{"id":"tsk_a","fence":3,"kind":"RUN","spec":{"command":["x"]},"cancelRequested":true}}}}`

func TestStreamGivesTasksAndAnswersPings(t *testing.T) {
	t.Parallel()
	api := socket(t, 1000, "", `{"type":"ping"}`, `{"type":"connection_ack"}`, "", "", `{"type":"ping"}`,
		"", taskMessage)
	var got []gql.NodeWork
	ready := false
	err := api.Tasks(t.Context(), &keeper{}, func() { ready = true }, func(task gql.NodeWork) {
		got = append(got, task)
	})
	require.Error(t, err)
	require.True(t, ready)
	require.Len(t, got, 1)
	require.Equal(t, 3, got[0].Fence)
	require.True(t, got[0].CancelRequested)
	require.JSONEq(t, `{"command":["x"]}`, string(got[0].Spec))
}

func TestStreamThatRefusesTheCredentialSaysSo(t *testing.T) {
	t.Parallel()
	for name, api := range map[string]*platform.Client{
		"by close code": socket(t, 4401, ""),
		"by forbidden":  socket(t, 4403, "", `{"type":"connection_ack"}`, ""),
		"by an error": socket(t, 1000, "", `{"type":"connection_ack"}`, "",
			`{"id":"1","type":"error","payload":[{"message":"m","extensions":{"code":"UNAUTHENTICATED"}}]}`),
		"by upgrade": serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }),
	} {
		who := &keeper{}
		err := api.Tasks(t.Context(), who, func() {}, func(gql.NodeWork) {})
		require.True(t, platform.Unauthenticated(err), "%s: %v", name, err)
		require.Equal(t, 1, who.refused, name)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_ack"}`))
		<-hold
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.Tasks(ctx, &keeper{}, cancel, func(gql.NodeWork) {}) }()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the stream outlives its context")
	}
}
