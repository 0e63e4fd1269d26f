package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func TestGraphQLMayAnswerOnAnotherPath(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /gpu/api/query", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":{"apps":{"edges":[{"node":{"slug":"hello"}}]}}}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c := newClient(t, server.URL+"/gpu", client.Options{GraphQLPath: "/api/query"})
	answer, err := gql.ListApps(t.Context(), c, "", 0, "")
	require.NoError(t, err)
	require.Equal(t, "hello", answer.Apps.Edges[0].Node.Slug)
	for _, path := range []string{"graphql", "/graphql?x=1", "/graphql#x"} {
		_, err := client.New(server.URL, client.Options{GraphQLPath: path})
		require.ErrorContains(t, err, "graphql path", path)
	}
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                           "without a GraphQL answer",
		`{"data":null}`:                "without a GraphQL answer",
		`{"data":{"apps":"many"}}`:     "not of the expected shape",
		`{"data":{"apps":{"edges":1}}`: "without a GraphQL answer",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		_, err := gql.ListApps(t.Context(), newClient(t, server.URL, client.Options{}), "", 0, "")
		require.ErrorContains(t, err, want, body)
		require.Equal(t, client.CodeInternal, client.CodeOf(err), body)
	}
}

func TestOnConnectIsToldOfEveryAcknowledgedConnection(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t, schemaFiles)
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["after"] == nil {
			return firstOf(emit(event(1)), clienttest.ErrDrop)
		}
		return firstOf(emitFrom(emit, 2, 3), call.Context.Err())
	})
	connected := 0
	c := newClient(t, server.URL, client.Options{OnConnect: func() { connected++ }})
	seqs, err := tail(t, c.Timeline(t.Context(), "ins_1", ""), 3)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, seqs)
	require.Equal(t, 2, connected)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestHandshakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	t.Cleanup(func() { close(silent) })
	upgraded := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		close(upgraded)
		<-silent // never acknowledges
	}))
	t.Cleanup(server.CloseClientConnections)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := tail(t, newClient(t, server.URL, client.Options{}).Timeline(ctx, "ins_1", ""), 1)
		ended <- err
	}()
	<-upgraded
	cancel()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(5 * time.Second):
		require.Fail(t, "the handshake outlives its context")
	}
}
