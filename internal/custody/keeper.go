package custody

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/secrets"
)

// Bounds of calls to a keeper.
const (
	// keeperTimeout is how long one call may take. It is kept here as well as in the context, since some of the clients
	// do not look at the context.
	keeperTimeout = 5 * time.Second
	// keeperCalls is how many calls to one keeper may be under way, including those that were given up.
	keeperCalls = 16
	// keyBytes is how long a value's key is.
	keyBytes = 32
)

// Keeper wraps and unwraps keys under a name. A call ends within five seconds, and at most sixteen are under way.
type Keeper struct {
	name   string
	keeper *secrets.Keeper
	slots  chan struct{}
}

// NewKeeper names a keeper. The name is stored beside what it wraps and identifies the keeper in a ring.
func NewKeeper(name string, keeper *secrets.Keeper) Keeper {
	return Keeper{name: name, keeper: keeper, slots: make(chan struct{}, keeperCalls)}
}

// wrap has a key wrapped. An answer without content, which some clients take for a good one, would lose the value.
func (k Keeper) wrap(ctx context.Context, key []byte) ([]byte, error) {
	wrapped, err := k.ask(ctx, "wrap", func(ctx context.Context) ([]byte, error) { return k.keeper.Encrypt(ctx, key) })
	if err == nil && len(wrapped) == 0 {
		return nil, fmt.Errorf("%w: keeper %s gave an empty answer", ErrKeeper, k.name)
	}
	return wrapped, err
}

func (k Keeper) unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	key, err := k.ask(ctx, "unwrap", func(ctx context.Context) ([]byte, error) {
		return k.keeper.Decrypt(ctx, wrapped)
	})
	if err == nil && len(key) != keyBytes {
		return nil, fmt.Errorf("%w: keeper %s did not return a key", ErrKeeper, k.name)
	}
	return key, err
}

// answer is the result of a call.
type answer struct {
	bytes []byte
	err   error
}

// ask makes one call. A client that panics on an answer it did not expect has failed like any other.
func (k Keeper) ask(ctx context.Context, what string, call func(context.Context) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	select {
	case k.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: keeper %s is busy: %w", ErrKeeper, k.name, ctx.Err())
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-k.slots }()
		done <- guarded(ctx, call)
	}()
	select {
	case got := <-done:
		if got.err != nil {
			return nil, fmt.Errorf("%w: %s a key with keeper %s: %w", ErrKeeper, what, k.name, got.err)
		}
		return got.bytes, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s a key with keeper %s: %w", ErrKeeper, what, k.name, ctx.Err())
	}
}

func guarded(ctx context.Context, call func(context.Context) ([]byte, error)) (out answer) {
	defer func() {
		if recover() != nil {
			out = answer{err: errors.New("its client did not understand the answer")}
		}
	}()
	bytes, err := call(ctx)
	return answer{bytes, err}
}
