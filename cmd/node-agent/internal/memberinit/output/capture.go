package output

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// drainGrace is how long output is still read after the command ended, for what is in the pipe. A
// background process that holds the pipe open does not hold the result.
const drainGrace = 300 * time.Millisecond

// Capture keeps a stream within bounds: the first wire.StreamCap bytes for followers, the last wire.StreamCap bytes for
// the result. It reads on beyond, so that the command never blocks.
type Capture struct {
	mu     sync.Mutex
	head   []byte
	tail   []byte
	total  int64
	closed bool
	change chan struct{} // closed and renewed at every change
}

// NewCapture begins a stream.
func NewCapture() *Capture { return &Capture{change: make(chan struct{})} }

// Write never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(p))
	if room := wire.StreamCap - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*wire.StreamCap {
		c.tail = append([]byte(nil), c.tail[len(c.tail)-wire.StreamCap:]...)
	}
	c.wake()
	return len(p), nil
}

// Close marks the end of the stream.
func (c *Capture) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake()
}

func (c *Capture) wake() {
	close(c.change)
	c.change = make(chan struct{})
}

// From gives what followers may see from offset on, whether more can come, and what to wait for.
func (c *Capture) From(offset int) (data []byte, more bool, change <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data = c.head[min(offset, len(c.head)):]
	return data, !c.closed && len(c.head) < wire.StreamCap, c.change
}

// Result gives everything when it fits, else the tail.
func (c *Capture) Result() (data []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= wire.StreamCap {
		return append([]byte{}, c.head...), false
	}
	return append([]byte{}, c.tail[len(c.tail)-wire.StreamCap:]...), true
}

// Follow reads a pipe into the capture until its end, or until release is called: then for at most
// drainGrace more.
func (c *Capture) Follow(pipe *os.File) (release func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer pipe.Close()
		_, err := io.Copy(c, pipe)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}()
	return func() {
		_ = pipe.SetReadDeadline(time.Now().Add(drainGrace))
		<-done
		c.Close()
	}
}
