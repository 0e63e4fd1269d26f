package live

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	askEvery   = 3 * time.Second // a right that is gone ends what rests on it within this and one query
	askTimeout = 2 * time.Second
	askAtOnce  = 8 // questions under way at a time
)

// Sentinel asks again and again whether callers still may what they are doing: once for each
// different question, however many sockets or subscriptions rest on its answer.
type Sentinel struct {
	mu      sync.Mutex
	watches map[question]*watch
}

// question is what makes two watches one. The credential is told by its fingerprint: with its id
// alone, a forged secret would be asked about in the name of whom it was forged of, and end their
// subscriptions too.
type question struct{ credential, subject string }

type watch struct {
	ctx    context.Context // values of one of those who wait, for its credential
	ask    func(ctx context.Context) error
	losers map[*loser]struct{}
}

type loser struct{ lost func(error) }

// NewSentinel makes a sentinel; it asks while Run runs.
func NewSentinel() *Sentinel { return &Sentinel{watches: make(map[question]*watch)} }

// Watch calls lost, at most once, when ask says that the caller of ctx may no more: with PERMISSION_REVOKED when the right is
// gone, UNAUTHENTICATED or TOKEN_EXPIRED when the credential is. The returned
// function ends the watch; it may be called twice. Asking that fails for another reason, such as a
// database that is away, changes nothing.
func (s *Sentinel) Watch(ctx context.Context, subject string, ask func(context.Context) error, lost func(error)) (forget func()) {
	credential, _ := tx.CredentialFrom(ctx)
	key := question{credential: credential.Fingerprint(), subject: subject}
	l := &loser{lost: lost}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[key]
	if w == nil {
		w = &watch{ctx: context.WithoutCancel(ctx), ask: ask, losers: make(map[*loser]struct{})}
		s.watches[key] = w
	}
	w.losers[l] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(w.losers, l)
		if len(w.losers) == 0 && s.watches[key] == w {
			delete(s.watches, key)
		}
	}
}

// Run asks until ctx ends. A round begins when the one before has ended.
func (s *Sentinel) Run(ctx context.Context) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.round(ctx)
		}
	}
}

func (s *Sentinel) round(ctx context.Context) {
	s.mu.Lock()
	asked := make(map[question]*watch, len(s.watches))
	for key, w := range s.watches {
		asked[key] = w
	}
	s.mu.Unlock()
	slots := make(chan struct{}, askAtOnce)
	var running sync.WaitGroup
	for key, w := range asked {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			s.askOne(key, w)
		})
	}
	running.Wait()
}

func (s *Sentinel) askOne(key question, w *watch) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	err := w.ask(ctx)
	if !gone(err) {
		return
	}
	err = ended(err)
	s.mu.Lock()
	losers := w.losers
	w.losers = make(map[*loser]struct{})
	if s.watches[key] == w {
		delete(s.watches, key)
	}
	s.mu.Unlock()
	for l := range losers {
		l.lost(err)
	}
}

// ended is what those are told whose right is gone. What they hear of an object is PERMISSION_REVOKED, whatever enforcement
// says of it now: they knew of it. That the credential itself is no more is told as it is.
func ended(err error) error {
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return fault.New(fault.PermissionRevoked, "the right that this was opened with is gone").Because(err)
	}
	return err
}

// gone says whether an answer takes a right away, rather than leaving the question open.
func gone(err error) bool {
	return fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) ||
		fault.Is(err, fault.TokenExpired) || fault.Is(err, fault.PermissionRevoked)
}
