// Package pump sends what a run prints to the platform while it runs.
package pump

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const (
	// flushEvery is how long output gathers before it is sent.
	flushEvery = 250 * time.Millisecond
	// maxPiece bounds one piece of output, in bytes; it is what the platform takes at once.
	maxPiece = 16 << 10
	// maxBackoff bounds the wait between tries to reach the platform.
	maxBackoff = 15 * time.Second
)

// Pump sends a run's output to the platform as it comes. It holds at most wire.StreamCap bytes a
// stream, which is all that is ever streamed, so an absent platform costs no more memory than that.
type Pump struct {
	send   func(context.Context, gql.AppendNodeTaskOutputInput) (int, error)
	taskID string
	fence  int64

	mu      sync.Mutex
	streams map[string]*outStream
	wake    chan struct{}
}

// outStream is one stream: its clean text so far, and how much of it the platform has.
type outStream struct {
	cleaner text.Cleaner
	raw     int64
	text    string
	sent    int
	full    bool
}

// add appends text up to the bound; clean text may be longer than the raw bytes that it comes from.
func (s *outStream) add(more string) {
	if s.full {
		return
	}
	s.full = len(s.text)+len(more) > wire.StreamCap
	s.text = text.Head(s.text+more, wire.StreamCap)
}

// Finish adds what was held back as an incomplete character.
func (p *Pump) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.streams {
		stream.add(stream.cleaner.Close())
	}
}

// New returns the pump of a task's run. Send brings a piece to the platform, and returns the next offset that it wants.
func New(taskID string, fence int64, send func(context.Context, gql.AppendNodeTaskOutputInput) (int, error)) *Pump {
	return &Pump{
		send: send, taskID: taskID, fence: fence, wake: make(chan struct{}, 1),
		streams: map[string]*outStream{"stdout": {}, "stderr": {}},
	}
}

// Take is called with each piece of raw output, in order.
func (p *Pump) Take(piece wire.Output) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := p.streams[piece.Stream]
	if stream == nil || piece.Offset != stream.raw {
		return
	}
	stream.raw += int64(len(piece.Data))
	stream.add(stream.cleaner.Write(piece.Data))
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends. Failures are retried with what came meanwhile; a refusal ends it.
func (p *Pump) Run(ctx context.Context) {
	retry := pace.New(maxBackoff)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		if pace.Pause(ctx, flushEvery) != nil {
			return
		}
		for {
			err := p.Flush(ctx)
			if err == nil {
				retry.Reset()
				break
			}
			if platform.Permanent(err) || retry.Wait(ctx) != nil {
				return
			}
		}
	}
}

// Flush sends what is there.
func (p *Pump) Flush(ctx context.Context) error {
	for _, name := range []string{"stdout", "stderr"} {
		for {
			piece, ok := p.next(name)
			if !ok {
				break
			}
			wanted, err := p.send(ctx, piece)
			if err != nil {
				return err
			}
			if !p.advance(name, piece, wanted) {
				break
			}
		}
	}
	return nil
}

func (p *Pump) next(name string) (gql.AppendNodeTaskOutputInput, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := p.streams[name]
	piece := text.Head(stream.text[stream.sent:], maxPiece)
	return gql.AppendNodeTaskOutputInput{TaskId: p.taskID, Fence: int(p.fence),
		Stream: gql.OutputStream(strings.ToUpper(name)), Offset: stream.sent, Data: piece}, piece != ""
}

// advance goes where the platform wants to continue: after the piece, or beyond it when it had more from an earlier
// agent. It reports whether that is a step forward: a platform that wants no more, or something from before, gets the
// result's text instead.
func (p *Pump) advance(name string, piece gql.AppendNodeTaskOutputInput, wanted int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := p.streams[name]
	if wanted <= piece.Offset {
		stream.sent = len(stream.text)
		return false
	}
	stream.sent = min(wanted, len(stream.text))
	return true
}
