package workers_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// between puts a proxy in front of an adapter: it calls hold before each dispatch, which decides if it goes through.
func (l *lab) between(to string, hold func(w http.ResponseWriter, r *http.Request) (through bool)) string {
	l.Helper()
	target, err := url.Parse(to)
	require.NoError(l.TB, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && !hold(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	l.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// A dispatch is under way while a decommission takes its operation's place. It arrives after the cancel, at an adapter
// that did not know the operation then, and nothing of it is begun.
func TestADispatchInFlightAtASupersedeMeetsATombstone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var created atomic.Int64
	inner := l.kit("late", func(ctx context.Context, run *adapter.Run) error {
		created.Add(1)
		return joins(ctx, run)
	})
	held, leave, arrived := make(chan string, 1), make(chan struct{}), make(chan *httptest.ResponseRecorder, 1)
	target, err := url.Parse(inner)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	var first atomic.Bool
	w := l.world("late", l.between(inner, func(_ http.ResponseWriter, r *http.Request) bool {
		if !first.CompareAndSwap(false, true) {
			return true
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		late := r.Clone(context.WithoutCancel(r.Context())) // its sender may be gone when it arrives
		late.Body = io.NopCloser(bytes.NewReader(body))
		held <- r.URL.Path
		<-leave
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, late)
		arrived <- answer
		return false
	}))
	l.work()
	it := l.launch(w, time.Minute)
	select {
	case <-held:
	case <-time.After(patience):
		require.Fail(t, "nothing was dispatched")
	}
	down := l.teardown(it)
	op := l.ended(down)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	close(leave)
	answer := <-arrived
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	require.Contains(t, answer.Body.String(), `"canceled"`)
	require.Zero(t, created.Load(), "nothing of it was begun")
	require.Equal(t, lifecycle.OperationCanceled, l.op(it.create).State)
}

// What the adapter never got, and will not begin any more, is canceled at once.
func TestACancelOfWhatTheAdapterNeverGotEndsByItsTombstone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	tried := make(chan struct{}, 64)
	w := l.world("far", l.between(l.kit("far", joins), func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		tried <- struct{}{}
		return false
	}))
	l.work()
	it := l.launch(w, time.Hour)
	<-tried
	l.stop(it)
	op := l.ended(it.create)
	require.Equal(t, []any{lifecycle.OperationCanceled, "CANCELED"}, []any{op.State, op.ErrorCode})
	require.Contains(t, op.CancelMessage, "never dispatched")
}
