package wsapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// feed is a Streams that serves the field topic and hands its sinks to the test.
type feed struct {
	sinks   chan transport.Sink
	stopped atomic.Int32
	err     error
	inOpen  func(ctx context.Context, sink transport.Sink)
}

func newFeed() *feed { return &feed{sinks: make(chan transport.Sink, 100)} }

// Open implements transport.Streams.
func (f *feed) Open(ctx context.Context, op *graphql.OperationContext, sink transport.Sink) (func(), bool, error) {
	if !strings.Contains(op.RawQuery, "topic") {
		return nil, false, nil
	}
	if graphql.GetOperationContext(ctx) != op {
		return nil, true, errors.New("the context does not carry the operation")
	}
	if f.inOpen != nil {
		f.inOpen(ctx, sink)
	}
	f.sinks <- sink
	return func() { f.stopped.Add(1) }, true, f.err
}

const topic = `{"id":"t","type":"subscribe","payload":{"query":"subscription { topic(name: \"x\") }"}}`

// open connects and subscribes to a topic.
func open(t *testing.T, f *feed, change func(*wsapi.Options)) (*bench, *client, transport.Sink) {
	t.Helper()
	b := setup(t, func(o *wsapi.Options) {
		o.Streams = f
		if change != nil {
			change(o)
		}
	})
	c := b.connect(t)
	c.send(topic)
	return b, c, <-f.sinks
}

func (f *feed) ends(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return f.stopped.Load() == 1 }, patience, time.Millisecond,
		"stop is called once")
}

func TestStreamPayloadsArriveUnchangedAndInOrder(t *testing.T) {
	t.Parallel()
	f := newFeed()
	_, c, sink := open(t, f, nil)
	require.True(t, sink.Send([]byte(`{"data":{"topic":"1"}}`)))
	require.True(t, sink.SendAll([][]byte{[]byte(`{"data":{"topic":"2"}}`), []byte(`{"data":{"topic":"3"}}`)}))
	sink.Complete()
	for i := 1; i <= 3; i++ {
		require.Equal(t, fmt.Sprintf(`{"id":"t","type":"next","payload":{"data":{"topic":"%d"}}}`, i), c.receive())
	}
	require.JSONEq(t, `{"id":"t","type":"complete"}`, c.receive())
	f.ends(t)
	<-sink.Done()
	require.False(t, sink.Send([]byte(`{}`)), "nothing goes out after the end")
	sink.Complete()
	sink.Fail(errors.New("too late"))
	c.send(`{"type":"ping"}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
	require.EqualValues(t, 1, f.stopped.Load())
}

func TestStreamOfEveryFrameSizeArrivesWhole(t *testing.T) {
	t.Parallel()
	_, c, sink := open(t, newFeed(), nil)
	for _, size := range []int{0, 1, 60, 61, 62, 125, 126, 127, 4096, 65_400, 65_535, 65_536, 70_000, 300_000} {
		payload := `{"data":{"topic":"` + strings.Repeat("x", size) + `"}}`
		require.True(t, sink.Send([]byte(payload)))
		require.Equal(t, payload, string(c.message().Payload))
	}
}

func TestStreamFailureIsOnePresentedErrorWithoutComplete(t *testing.T) {
	t.Parallel()
	f := newFeed()
	_, c, sink := open(t, f, nil)
	sink.Fail(fmt.Errorf("wrapped: %w", testschema.ErrKnown))
	m := c.message()
	require.Equal(t, "error", m.Type)
	require.Contains(t, string(m.Payload), `"CONFLICT"`)
	f.ends(t)
	c.send(`{"type":"ping"}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
}

func TestStreamThatDoesNotOpenIsAnError(t *testing.T) {
	t.Parallel()
	f := newFeed()
	f.err = testschema.ErrKnown
	_, c, sink := open(t, f, nil)
	require.Contains(t, c.receive(), `"CONFLICT"`)
	<-sink.Done()
	f.ends(t)
}

func TestStreamThatPanicsIsAnInternalError(t *testing.T) {
	t.Parallel()
	f := newFeed()
	f.inOpen = func(context.Context, transport.Sink) { panic("secret") }
	b := setup(t, func(o *wsapi.Options) { o.Streams = f })
	c := b.connect(t)
	c.send(topic)
	text := c.receive()
	require.Contains(t, text, `"INTERNAL"`)
	require.NotContains(t, text, "secret")
}

func TestOtherSubscriptionsRunOnTheExecutorBesideStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *wsapi.Options) { o.Streams = newFeed() })
	c := b.connect(t)
	c.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription { count(to: 1) }"}}`)
	require.Equal(t, "next", c.message().Type)
	require.Equal(t, "complete", c.message().Type)
}

func TestCompleteOfTheClientStopsTheStreamAndDropsWhatIsQueued(t *testing.T) {
	t.Parallel()
	f := newFeed()
	_, c, sink := open(t, f, nil)
	c.send(`{"id":"t","type":"complete"}`)
	f.ends(t)
	<-sink.Done()
	require.False(t, sink.Send([]byte(`{"data":{}}`)))
	require.False(t, sink.SendAll([][]byte{[]byte(`{"data":{}}`)}))
	c.send(`{"type":"ping"}`)
	require.JSONEq(t, `{"type":"pong"}`, c.receive())
}

func TestCompleteWhileTheStreamOpensStopsItOnce(t *testing.T) {
	t.Parallel()
	f := newFeed()
	f.inOpen = func(_ context.Context, sink transport.Sink) { <-sink.Done() }
	b := setup(t, func(o *wsapi.Options) { o.Streams = f })
	c := b.connect(t)
	c.send(topic)
	c.send(`{"id":"t","type":"complete"}`)
	f.ends(t)
}

func TestStreamStopMayCallItsSink(t *testing.T) {
	t.Parallel()
	f := newFeed()
	f.inOpen = func(_ context.Context, sink transport.Sink) { sink.Send([]byte(`{"data":{"topic":"in"}}`)) }
	b, c, sink := open(t, f, nil)
	require.Equal(t, "next", c.message().Type)
	c.Close()
	f.ends(t)
	require.Eventually(t, func() bool { return b.server.Sockets() == 0 }, patience, time.Millisecond)
	require.False(t, sink.Send([]byte(`{}`)))
}

func TestSlowReaderIsCutAndNobodyElseWaits(t *testing.T) {
	t.Parallel()
	f := newFeed()
	b, slow, slowSink := open(t, f, nil)
	quick := b.connect(t)
	quick.send(topic)
	quickSink := <-f.sinks
	payload := []byte(`{"data":{"topic":"` + strings.Repeat("x", 20_000) + `"}}`)
	sent := 0
	for slowSink.Send(payload) { // its client does not read
		sent++
		require.True(t, quickSink.Send(payload))
		require.Equal(t, "next", quick.message().Type)
		require.Less(t, sent, 10_000, "the queue has no bound")
	}
	<-slowSink.Done()
	closed := slow.closed() // it reads now: what was written before, then why it was cut
	require.Equal(t, wsapi.CloseSlowReader, closed.Code)
	require.Contains(t, closed.Text, "cursor")
	require.True(t, quickSink.Send(payload))
	require.Equal(t, "next", quick.message().Type)
}

func TestReaderThatNeverReadsIsCutAfterTheWriteTimeout(t *testing.T) {
	t.Parallel()
	f := newFeed()
	b, _, sink := open(t, f, func(o *wsapi.Options) { o.WriteTimeout = 50 * time.Millisecond })
	payload := []byte(`{"data":{"topic":"` + strings.Repeat("x", 20_000) + `"}}`)
	for sink.Send(payload) {
		continue
	}
	require.Eventually(t, func() bool { return b.server.Sockets() == 0 }, patience, time.Millisecond)
	f.ends(t)
}

func TestQueueIsBoundedInMessagesToo(t *testing.T) {
	t.Parallel()
	_, c, sink := open(t, newFeed(), func(o *wsapi.Options) { o.QueueMessages = 4 })
	five := make([][]byte, 5)
	for i := range five {
		five[i] = []byte(`{"data":{}}`)
	}
	require.False(t, sink.SendAll(five), "more than the queue ever holds")
	require.Equal(t, wsapi.CloseSlowReader, c.closed().Code)
}

func TestPacedReplayOfAnyLengthFitsTheQueue(t *testing.T) {
	t.Parallel()
	const total = 5000
	_, c, sink := open(t, newFeed(), func(o *wsapi.Options) { o.QueueMessages = 16 })
	go func() {
		for i := range total {
			if transport.Pace(context.Background(), sink) != nil ||
				!sink.Send(fmt.Appendf(nil, `{"data":{"topic":"%d"}}`, i)) {
				return
			}
		}
		sink.Complete()
	}()
	for i := range total {
		require.Equal(t, fmt.Sprintf(`{"data":{"topic":"%d"}}`, i), string(c.message().Payload))
	}
	require.Equal(t, "complete", c.message().Type)
}

func TestBurstPacedOnAllCutsOnlyWhoStaysBehind(t *testing.T) {
	t.Parallel()
	f := newFeed()
	b, quick, first := open(t, f, func(o *wsapi.Options) { o.QueueMessages = 32 })
	stuck := b.connect(t) // never reads on
	stuck.send(topic)
	sinks := []transport.Sink{first, <-f.sinks}
	page := make([][]byte, 16)
	for i := range page {
		page[i] = []byte(`{"data":{"topic":"` + strings.Repeat("x", 5000) + `"}}`)
	}
	const pages = 200
	go func() {
		for range pages {
			for i, sink := range sinks {
				if !sink.SendAll(page) && i == 0 {
					return
				}
			}
			transport.PaceAll(context.Background(), 3*time.Second, slices.Values(sinks))
		}
		first.Complete()
	}()
	for range pages * len(page) {
		require.Equal(t, "next", quick.message().Type)
	}
	require.Equal(t, "complete", quick.message().Type)
	<-sinks[1].Done() // cut, as it stayed behind
}

func TestPaceEndsWithTheSubscriberOrItsContext(t *testing.T) {
	t.Parallel()
	f := newFeed()
	_, c, sink := open(t, f, nil)
	require.NoError(t, transport.Pace(t.Context(), sink))
	payload := []byte(`{"data":{"topic":"` + strings.Repeat("x", 100_000) + `"}}`)
	// fill paces and sends until an error: it fills the kernel's buffer, then half of the queue, and waits behind it,
	// for as long as each pause may take.
	fill := func(pause time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			early, stop := context.WithTimeout(ctx, pause)
			err := transport.Pace(early, sink)
			stop()
			if err != nil {
				return err
			}
			sink.Send(payload)
		}
	}
	require.ErrorIs(t, fill(100*time.Millisecond), context.DeadlineExceeded)
	done := make(chan error, 1)
	go func() { done <- fill(patience) }() // behind a full queue, or soon there if the writer was only slow
	c.send(`{"id":"t","type":"complete"}`)
	require.ErrorIs(t, <-done, transport.ErrGone)
}

func TestMessagesStayWholeWhenTheKernelTakesThemInParts(t *testing.T) {
	t.Parallel()
	const total = 1500
	f := newFeed()
	_, c, sink := open(t, f, nil)
	require.NoError(t, c.NetConn().(*net.TCPConn).SetReadBuffer(32<<10))
	size := func(i int) int { return (i * 7919) % 40_000 }
	go func() {
		for i := range total {
			payload := fmt.Appendf(nil, `{"data":{"topic":"%d %s"}}`, i, strings.Repeat("x", size(i)))
			if transport.Pace(context.Background(), sink) != nil || !sink.Send(payload) {
				return
			}
		}
		sink.Complete()
	}()
	for i := range total {
		want := fmt.Sprintf(`{"data":{"topic":"%d %s"}}`, i, strings.Repeat("x", size(i)))
		require.True(t, want == string(c.message().Payload), "message %d is damaged", i)
	}
	require.Equal(t, "complete", c.message().Type)
}
