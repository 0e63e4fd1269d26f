package wsapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

// BenchmarkFanout sends events of mixed size to many sockets, and to as many bare ones to
// which whole frames are written, in one run; the client is a process of its own.
//
//	ratio       messages/s over the bare broadcast's, events one after the other
//	burstratio  the same when events come faster than they can be written
//	KiB/socket  heap and stacks of the server per socket, all of it
func BenchmarkFanout(b *testing.B) {
	for _, sockets := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("sockets=%d", sockets), func(b *testing.B) { fanout(b, sockets) })
	}
}

// events is how many events a round sends: some 300,000 messages.
func events(sockets int) int { return 300_000 / sockets }

func fanout(b *testing.B, sockets int) {
	best := map[string]float64{}
	for b.Loop() {
		for range 2 { // take turns, so that other load on the machine hits each alike
			measure(b, best, "bare", startBare(b, sockets))
			measure(b, best, "ours", startFeed(b, sockets))
		}
	}
	b.ReportMetric(best["ours msg/s"], "msg/s")
	b.ReportMetric(best["bare msg/s"], "bare-msg/s")
	b.ReportMetric(best["ours msg/s"]/best["bare msg/s"], "ratio")
	b.ReportMetric(best["ours burst"]/best["bare msg/s"], "burstratio")
	b.ReportMetric(best["bare per p99"]/best["ours per p99"], "p99ratio")
	b.ReportMetric(best["ours KiB"], "KiB/socket")
	b.ReportMetric(best["bare KiB"], "bare-KiB/socket")
	b.ReportMetric(0, "ns/op")
}

// measure runs rounds on one server, keeps the best figures, and closes it.
func measure(b *testing.B, best map[string]float64, name string, l *load) {
	defer l.close()
	keep := func(what string, v float64) { best[name+" "+what] = max(best[name+" "+what], v) }
	e := events(l.sockets)
	for range 3 {
		took, stats := l.round(b, e, l.steady)
		keep("msg/s", float64(e*l.sockets)/took.Seconds())
		keep("per p99", 1/stats.P99.Seconds())
		if len(l.sinks) > 0 {
			took, _ = l.round(b, e, l.burst)
			keep("burst", float64(e*l.sockets)/took.Seconds())
		}
	}
	keep("KiB", l.kib)
}

// steady sends each event when the one before has been written everywhere.
func (l *load) steady(events int) {
	if len(l.sinks) > 0 {
		l.lockstep(events)
		return
	}
	l.broadcast(events)
}

// payload is one event's response, stamped with the time; sizes are mixed, 180 B to 2 KiB.
func payload(event int) []byte {
	size := []int{100, 100, 300, 300, 600, 2000}[event%6]
	return fmt.Appendf(nil, `{"data":{"topic":"%019d%s"}}`, time.Now().UnixNano(), strings.Repeat("x", size))
}

// load is one server under test with its client process.
type load struct {
	sockets int
	kib     float64
	in      io.WriteCloser
	out     *bufio.Reader

	mu    sync.Mutex
	sinks []*operation
	conns []net.Conn
	ends  []func()
}

func (l *load) close() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
}

// round has events sent and waits until the client has seen them all.
func (l *load) round(b testing.TB, events int, send func(events int)) (time.Duration, roundStats) {
	start := time.Now()
	fmt.Fprintln(l.in, events*l.sockets)
	send(events)
	line, err := l.out.ReadBytes('\n')
	require.NoError(b, err, "the load client gave up")
	var stats roundStats
	require.NoError(b, json.Unmarshal(line, &stats))
	return time.Since(start), stats
}

// broadcast writes each event, framed once, to every connection, one shard a core.
func (l *load) broadcast(events int) {
	for event := range events {
		body := payload(event)
		text := append(append([]byte(`{"id":"1","type":"next","payload":`), body...), '}')
		frame := textFrame(text).payload
		l.sharded(func(i int) { l.conns[i].Write(frame) })
	}
}

func (l *load) sharded(do func(i int)) {
	var shards sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		shards.Go(func() {
			for i := core; i < l.sockets; i += cores {
				do(i)
			}
		})
	}
	shards.Wait()
}

func (l *load) lockstep(events int) {
	look := time.NewTicker(20 * time.Microsecond)
	defer look.Stop()
	for event := range events {
		body := payload(event)
		for _, sink := range l.sinks {
			sink.Send(body)
		}
		for i := len(l.sinks) - 1; i >= 0; i-- {
			for l.sinks[i].socket.busy() {
				<-look.C
			}
		}
	}
}

func (s *socket) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scheduled
}

// burst sends as fast as the queues allow.
func (l *load) burst(events int) {
	for event := range events {
		body := payload(event)
		for _, sink := range l.sinks {
			sink.Send(body)
		}
		if event%16 == 15 {
			for _, sink := range l.sinks {
				sink.Pace(context.Background())
			}
		}
	}
}

// Open implements transport.Streams: it keeps the sink.
func (l *load) Open(_ context.Context, _ *graphql.OperationContext, sink transport.Sink) (func(), bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sinks = append(l.sinks, sink.(*operation))
	return func() {}, true, nil
}

func (l *load) opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sinks) + len(l.conns)
}

func startFeed(b testing.TB, sockets int) *load {
	l := &load{sockets: sockets}
	engine, err := transport.NewEngine(transport.Config{Schema: testschema.New().Executable(),
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	server, err := New(Options{Engine: engine, Streams: l, Sockets: sockets, Authenticate: anyone})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	l.ends = append(l.ends, func() {
		cancel()
		<-done
	})
	require.Eventually(b, server.running.Load, 10*time.Second, time.Millisecond)
	l.start(b, server, "subscribe")
	return l
}

func anyone(ctx context.Context, _ transport.Credential, _ *http.Request) (context.Context, error) {
	return ctx, nil
}

func startBare(b testing.TB, sockets int) *load {
	l := &load{sockets: sockets}
	upgrader := websocket.Upgrader{ReadBufferSize: 128, WriteBufferSize: 128, WriteBufferPool: &sync.Pool{}}
	l.start(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn.NetConn())
	}), "listen")
	return l
}

// start serves, starts the client process, and weighs the sockets once all are open.
func (l *load) start(b testing.TB, handler http.Handler, mode string) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	before := memory()
	client := exec.Command(os.Args[0])
	client.Env = append(os.Environ(), clientEnv+"="+listener.Addr().String()+" "+strconv.Itoa(l.sockets)+" "+mode)
	client.Stderr = os.Stderr
	l.in, err = client.StdinPipe()
	require.NoError(b, err)
	out, err := client.StdoutPipe()
	require.NoError(b, err)
	l.out = bufio.NewReader(out)
	require.NoError(b, client.Start())
	l.ends = append(l.ends, func() {
		l.in.Close()
		client.Wait()
		server.Close()
		for _, conn := range l.conns {
			conn.Close()
		}
	})
	line, err := l.out.ReadString('\n')
	require.NoError(b, err)
	require.Equal(b, "ready\n", line)
	require.Eventually(b, func() bool { return l.opened() == l.sockets }, 30*time.Second, time.Millisecond)
	l.kib = (memory() - before) / 1024 / float64(l.sockets)
}

// memory is what the process holds in heap and stacks, in bytes, garbage left out.
func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
