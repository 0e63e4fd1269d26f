package workers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// silence is the address of an adapter that never answers; it counts the operations that it is sent.
func (l *lab) silence(sent *atomic.Int64) string {
	l.Helper()
	leave := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			sent.Add(1)
		}
		<-leave
	}))
	l.Cleanup(func() { close(leave); server.CloseClientConnections(); server.Close() })
	return server.URL
}

// Every call to a dead adapter takes its whole time-out. More tenants than there are slots wait for it.
func TestALaunchGoesOnBesideManyTenantsOnAnAdapterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var sent atomic.Int64
	url := l.silence(&sent)
	dead := l.world("dead", url)
	l.work()
	var crowd []launched
	for n := range 40 {
		w := l.world(fmt.Sprintf("crowd-%d", n), url)
		w.adapter = dead.adapter
		crowd = append(crowd, l.launch(w, time.Hour))
	}
	l.until("they wait for the adapter", func() bool { return sent.Load() > 4 })
	began := time.Now()
	well := l.launch(l.world("well", l.kit("well", joins)), time.Minute)
	op := l.ended(well.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Less(t, time.Since(began), 8*time.Second, "before the first call to the dead one ends")

	l.until("a worker says whom operations wait for", func() bool {
		var busy bool
		require.NoError(t, l.pool().QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM worker_process
			WHERE busy_adapters ? 'dead')`).Scan(&busy))
		return busy
	})
	require.Less(t, sent.Load(), int64(30), "the adapter has no more calls than it may have")
	for _, it := range crowd {
		require.Contains(t, []lifecycle.OperationState{lifecycle.OperationPending, lifecycle.OperationRunning},
			l.op(it.create).State)
	}
}
