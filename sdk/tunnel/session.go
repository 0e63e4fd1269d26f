package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// Open is the request that begins a stream.
type Open struct {
	// Kind is what is requested, such as KindPort.
	Kind string `json:"kind"`
	// MemberID is the member of the request.
	MemberID string `json:"memberId"`
	// Spec are the details, by kind.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// Refusal is why a stream was not opened. It is an error.
type Refusal struct {
	// Code is a stable name in UPPER_SNAKE.
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// The codes of refusals.
const (
	// Unserved is the refusal of a kind that this agent does not know.
	Unserved = "UNSERVED"
	// NoMember is the refusal for a member that is not on this node, or whose init has ended.
	NoMember = "NO_MEMBER"
	// NotListening is the refusal of a port that nothing listens on.
	NotListening = "NOT_LISTENING"
	// Busy is the refusal of a stream beyond MaxStreams.
	Busy = "BUSY"
	// Invalid is the refusal of what cannot be read.
	Invalid = "INVALID"
)

// answer is the line that an opened stream is answered with.
type answer struct {
	Refused *Refusal `json:"refused,omitempty"`
}

// Session is one connection between an agent and the platform.
type Session struct{ mux *yamux.Session }

// NewSession takes a connection. The side that opens streams is the opener; the other serves them.
func NewSession(conn io.ReadWriteCloser, opener bool) (*Session, error) {
	config := yamux.DefaultConfig()
	config.KeepAliveInterval, config.ConnectionWriteTimeout = keepAlive, writePatience
	config.MaxStreamWindowSize = Window
	config.LogOutput = io.Discard
	var mux *yamux.Session
	var err error
	if opener {
		mux, err = yamux.Client(conn, config)
	} else {
		mux, err = yamux.Server(conn, config)
	}
	if err != nil {
		return nil, fmt.Errorf("tunnel: %w", err)
	}
	return &Session{mux: mux}, nil
}

// Close ends the connection with all its streams.
func (s *Session) Close() error { return s.mux.Close() }

// Done is closed when the connection has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Streams is how many streams are open.
func (s *Session) Streams() int { return s.mux.NumStreams() }

// Open opens a stream; the error is a *Refusal where the other side refused it.
func (s *Session) Open(ctx context.Context, open Open) (net.Conn, error) {
	stream, err := s.mux.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	if err := Begin(ctx, stream, open); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// Through opens a stream without a request: for a process that passes on the request of another one.
func (s *Session) Through() (net.Conn, error) {
	stream, err := s.mux.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	return stream, nil
}

// Begin writes the request and reads the answer; the error is a *Refusal where the other side refused it.
func Begin(ctx context.Context, stream net.Conn, open Open) error {
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = stream.SetDeadline(time.Now().Add(openPatience))
	if err := writeLine(stream, open); err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	var answered answer
	if err := readLine(stream, &answered); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("open a stream: %w", err)
	}
	if answered.Refused != nil {
		return answered.Refused
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return stream.SetDeadline(time.Time{})
}

// Serve serves the streams that the other side opens, each by a call of serve in a goroutine of its own, until the
// connection ends or ctx does; then it closes the connection and waits for all of them. Serve must answer by Granted
// before it passes bytes, or return an error, which refuses the stream.
func (s *Session) Serve(ctx context.Context, serve func(context.Context, Open, *Stream) error) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	for {
		accepted, err := s.mux.AcceptStreamWithContext(ctx)
		if err != nil {
			return fmt.Errorf("tunnel: %w", err)
		}
		full := s.mux.NumStreams() > MaxStreams
		streams.Go(func() {
			stream := &Stream{Conn: accepted}
			defer func() { _ = stream.Close() }()
			stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
			defer stop()
			s.one(ctx, stream, full, serve)
		})
	}
}

// one serves a stream.
func (s *Session) one(ctx context.Context, stream *Stream, full bool,
	serve func(context.Context, Open, *Stream) error) {
	_ = stream.SetDeadline(time.Now().Add(openPatience))
	var open Open
	err := readLine(stream, &open)
	switch {
	case err != nil:
		err = &Refusal{Code: Invalid, Message: "the stream does not begin with a line of JSON"}
	case full:
		err = &Refusal{Code: Busy, Message: "the node already serves its maximum of streams"}
	default:
		err = serve(ctx, open, stream)
	}
	if err == nil || stream.granted {
		return
	}
	var refused *Refusal
	if !errors.As(err, &refused) {
		refused = &Refusal{Code: Invalid, Message: err.Error()}
	}
	_ = writeLine(stream, answer{Refused: refused})
}

// Stream is a stream that is being served.
type Stream struct {
	net.Conn
	granted bool
}

// Granted answers that the stream is opened; what follows are its bytes.
func (s *Stream) Granted() error {
	if err := writeLine(s, answer{}); err != nil {
		return fmt.Errorf("grant a stream: %w", err)
	}
	s.granted = true
	return s.SetDeadline(time.Time{})
}

// writeLine writes a value as one line of JSON.
func writeLine(to io.Writer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("the first line of a stream has more than %d bytes", maxLine)
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// readLine reads one line of JSON, and nothing behind it.
func readLine(from io.Reader, into any) error {
	line := make([]byte, 0, 256)
	var one [1]byte
	for len(line) < maxLine {
		if _, err := io.ReadFull(from, one[:]); err != nil {
			return err
		}
		if one[0] == '\n' {
			return json.Unmarshal(line, into)
		}
		line = append(line, one[0]) // #nosec G602 -- an array of one byte
	}
	return fmt.Errorf("the first line of a stream has more than %d bytes", maxLine)
}
