package wsapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/wsapi"
)

func TestRevokedCredentialClosesTheSocketAndItsOperations(t *testing.T) {
	t.Parallel()
	revokes := make(chan func(wsapi.CloseReason), 1)
	var stopped atomic.Int32
	b := setup(t, func(o *wsapi.Options) {
		o.Watch = func(_ context.Context, revoke func(wsapi.CloseReason)) func() {
			revokes <- revoke
			return func() { stopped.Add(1) }
		}
	})
	c := b.connect(t)
	c.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
	<-b.schema.Entered
	revoke := <-revokes
	revoke(wsapi.CloseReason{Code: wsapi.CloseUnauthorized, Reason: "the token has expired"})
	revoke(wsapi.CloseReason{Code: wsapi.CloseForbidden, Reason: "a second reason does not count"})
	closed := c.closed()
	require.Equal(t, wsapi.CloseUnauthorized, closed.Code)
	require.Equal(t, "the token has expired", closed.Text)
	<-b.schema.Left
	require.Eventually(t, func() bool { return b.server.Sockets() == 0 }, patience, time.Millisecond)
	require.EqualValues(t, 1, stopped.Load(), "the watch ends once")
	revoke(wsapi.CloseReason{Code: wsapi.CloseForbidden}) // too late, and harmless
}

func TestCredentialRevokedWithinWatchNeverServes(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) {
		o.Watch = func(_ context.Context, revoke func(wsapi.CloseReason)) func() {
			revoke(wsapi.CloseReason{Code: wsapi.CloseForbidden, Reason: "gone meanwhile"})
			return nil
		}
	})
	c := b.dial(t, nil)
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, wsapi.CloseForbidden, c.closed().Code)
}

func TestLongCloseReasonIsCutOnARune(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) {
		o.Watch = func(_ context.Context, revoke func(wsapi.CloseReason)) func() {
			revoke(wsapi.CloseReason{Code: 4401, Reason: strings.Repeat("é", 100)})
			return nil
		}
	})
	c := b.dial(t, nil)
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, strings.Repeat("é", 61), c.closed().Text)
}

func TestStoppingServerClosesWith1001AndRunReturns(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	clients := []*client{b.connect(t), b.connect(t), b.dial(t, nil)}
	clients[0].send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
	<-b.schema.Entered
	b.stop()
	for _, c := range clients {
		require.Equal(t, wsapi.CloseGoingAway, c.closed().Code)
		c.Close()
	}
	<-b.schema.Left
	require.NoError(t, <-b.ran)
	require.Zero(t, b.server.Sockets())
	_, response, err := websocket.DefaultDialer.Dial(b.url(), nil)
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
}

func TestStoppingServerCutsSocketsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.StopTimeout = 20 * time.Millisecond })
	b.connect(t) // and never reads again
	b.stop()
	select {
	case err := <-b.ran:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "Run did not return")
	}
	require.Zero(t, b.server.Sockets())
}

func TestSecondRunIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	require.ErrorContains(t, b.server.Run(context.Background()), "already running")
}

func TestSilentPeerIsClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.KeepAlive = 50 * time.Millisecond })
	c := b.connect(t)
	c.SetPingHandler(func(string) error { return nil }) // answers neither kind of ping
	closed := c.closed()
	require.Equal(t, wsapi.CloseGoingAway, closed.Code)
	require.Equal(t, "no answer to a ping", closed.Text)
}

func TestPeerThatAnswersEitherPingStays(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.KeepAlive = 50 * time.Millisecond })
	for name, pong := range map[string]bool{"frames": false, "messages": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := b.connect(t)
			if pong {
				c.SetPingHandler(func(string) error { return nil })
			}
			for range 5 {
				require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
				_, text, err := c.ReadMessage()
				require.NoError(t, err)
				require.JSONEq(t, `{"type":"ping"}`, string(text))
				if pong {
					c.send(`{"type":"pong"}`)
				}
			}
		})
	}
}

func TestGarbageInitLeaksNothing(t *testing.T) {
	b := setup(t, nil) // not parallel: it counts the process's descriptors and goroutines
	b.connect(t).Close()
	require.Eventually(t, func() bool { return b.server.Sockets() == 0 }, patience, time.Millisecond)
	http.DefaultClient.CloseIdleConnections()
	runtime.GC()
	fds, goroutines := openDescriptors(t), runtime.NumGoroutine()
	var open []*client
	for i := range 500 {
		c := b.dial(t, nil)
		switch i % 4 {
		case 0:
			c.send(`{"type":"connection_init","payload":"not an object"}`)
		case 1:
			c.send(`garbage`)
		case 2:
			c.send(`{"type":"connection_init","payload":{"authorization":"Bearer panic"}}`)
		case 3:
			c.send(`{"id":"1","type":"subscribe","payload":{"query":"{ hello }"}}`)
		}
		open = append(open, c)
	}
	for _, c := range open {
		c.closed()
		c.Close()
	}
	require.Eventually(t, func() bool {
		return b.server.Sockets() == 0 && openDescriptors(t) <= fds+5 && runtime.NumGoroutine() <= goroutines+5
	}, patience, 5*time.Millisecond, "descriptors %d, goroutines %d at the start", fds, goroutines)
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestClientsThatVanishLeaveNothingRunning(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for range 20 {
		c := b.connect(t)
		c.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { silence }"}}`)
		<-b.schema.Entered
		require.NoError(t, c.NetConn().(*net.TCPConn).SetLinger(0))
		c.NetConn().Close() // a reset, without a close frame
	}
	for range 20 {
		<-b.schema.Left
	}
	require.Eventually(t, func() bool { return b.server.Sockets() == 0 }, patience, time.Millisecond)
}

func TestCloseFromTheClientIsAnsweredInKind(t *testing.T) {
	t.Parallel()
	c := setup(t, nil).connect(t)
	require.NoError(t, c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "bye"),
		time.Now().Add(patience)))
	require.Equal(t, 1000, c.closed().Code)
}

func TestOverTLSTheSameProtocolIsServed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	secure := httptest.NewTLSServer(b.server)
	defer secure.Close()
	dialer := websocket.Dialer{Subprotocols: []string{wsapi.Protocol},
		TLSClientConfig: secure.Client().Transport.(*http.Transport).TLSClientConfig}
	conn, _, err := dialer.Dial("wss"+strings.TrimPrefix(secure.URL, "https"), nil)
	require.NoError(t, err)
	defer conn.Close()
	c := &client{conn, t}
	c.send(`{"type":"connection_init"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, c.receive())
	c.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { count(to: 100) }"}}`)
	for range 100 {
		require.Equal(t, "next", c.message().Type)
	}
	require.Equal(t, "complete", c.message().Type)
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, wsapi.CloseTooManyInits, c.closed().Code)
}

func TestManyClientsRacingStartsAndCompletesStayConsistent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.connect(t)
	var all sync.WaitGroup
	for n := range 8 {
		c := b.connect(t)
		all.Go(func() { race(c, n) })
	}
	all.Wait()
}

// race starts operations and completes them at once, whichever side is first; the socket
// must live on and answer the last one.
func race(c *client, n int) {
	queries := []string{"{ hello }", "subscription { silence }", "subscription { count(to: 20) }", "{ slow }"}
	for i := range 100 {
		c.send(fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":{"query":"%s"}}`, i, queries[(i+n)%len(queries)]))
		c.send(fmt.Sprintf(`{"id":"%d","type":"complete"}`, i))
	}
	c.send(`{"id":"last","type":"subscribe","payload":{"query":"{ hello }"}}`)
	for m := c.message(); m.ID != "last"; m = c.message() {
		continue
	}
}
