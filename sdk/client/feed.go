package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/Khan/genqlient/graphql"
)

// verdict is what a feed makes of an item that arrived.
type verdict int

const (
	deliver verdict = iota
	drop
	resume
)

// maxHoles bounds how often in a row a feed resumes because of a hole in the numbering.
const maxHoles = 3

// feed is one subscription over all its connections.
type feed[T any] struct {
	client *Client
	// request is the subscription as it is to be sent now: after the last cursor.
	request func() *graphql.Request
	// decode reads an item out of an answer's data.
	decode func(json.RawMessage) (*T, error)
	// accept says what becomes of an item and remembers it when it is delivered.
	accept func(*T) verdict
}

var (
	errStopped = errors.New("the reader stopped")
	errHole    = errors.New("the feed has a gap in its numbering")
)

// progress is what a feed remembers between connections.
type progress struct {
	failures, holes int
	lastUp          time.Time
	token           string
}

// all runs the feed until it completes, fails for good, or the reader stops.
func (f *feed[T]) all(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		state := &progress{lastUp: time.Now()}
		for {
			err := f.connectOnce(ctx, state, yield)
			if err == nil || errors.Is(err, errStopped) {
				return
			}
			if err = f.recover(ctx, state, err); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// connectOnce carries the feed over one connection; nil means that the server completed it.
func (f *feed[T]) connectOnce(ctx context.Context, state *progress, yield func(*T, error) bool) error {
	if f.client.options.TokenSource != nil {
		token, err := f.client.token(ctx)
		if err != nil {
			return err
		}
		state.token = token
	}
	s, err := f.client.connect(ctx, f.client.correlationID(ctx))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	defer s.close()
	if f.client.options.OnConnect != nil {
		f.client.options.OnConnect()
	}
	err = s.run(f.request(), func(data json.RawMessage) error { return f.handle(state, data, yield) })
	state.lastUp = time.Now()
	if errors.Is(err, errStopped) || errors.Is(err, errHole) {
		s.finish()
	}
	return err
}

// handle decodes one item and gives it to the reader if it is new.
func (f *feed[T]) handle(state *progress, data json.RawMessage, yield func(*T, error) bool) error {
	item, err := f.decode(data)
	if err != nil {
		return fmt.Errorf("decode feed: %w", err)
	}
	state.failures = 0
	switch f.accept(item) {
	case drop:
		return nil
	case resume:
		return errHole
	default:
		state.holes = 0
	}
	if !yield(item, nil) {
		return errStopped
	}
	return nil
}

// recover waits before the next connection; it returns the error that ends the feed when there is to be none.
func (f *feed[T]) recover(ctx context.Context, state *progress, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errHole) {
		if state.holes++; state.holes > maxHoles {
			return &Error{Code: CodeInternal, Message: errHole.Error(), Err: err}
		}
	} else if !f.mayReconnect(ctx, state, err) {
		return err
	}
	state.failures++
	down := f.client.options.MaxDowntime
	if down > 0 && time.Since(state.lastUp) > down {
		return err
	}
	if !f.client.pause(ctx, Retry{Err: err, Attempt: state.failures, Delay: backoff(state.failures)}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

// mayReconnect reports whether another connection may do better: the failure is a passing one, or the credential
// has been replaced since.
func (f *feed[T]) mayReconnect(ctx context.Context, state *progress, err error) bool {
	found, ok := AsError(err)
	if !ok {
		return false
	}
	if found.Code != CodeUnauthenticated && found.Code != CodeTokenExpired {
		return found.Retryable
	}
	if f.client.options.TokenSource == nil {
		return false
	}
	fresh, err := f.client.token(ctx)
	return err == nil && fresh != state.token
}
