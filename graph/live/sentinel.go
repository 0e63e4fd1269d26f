package live

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	recheckEvery   = 3 * time.Second // a lost right ends what was opened with it within this and a round's queries
	recheckTimeout = 2 * time.Second
	recheckAtOnce  = 64 // rechecks under way at a time, which share proofs of their callers' rights
	askAtOnce      = 8  // of those, the ones that ask by statements of their own
)

// Sentinel rechecks, while sockets and subscriptions are open, whether their callers may still have them: once for each
// question, however many sockets and subscriptions share it. A check that depends on a caller's rights alone is not
// repeated while they are the same, which one statement proves for many callers.
type Sentinel struct {
	db    *tx.DB
	asked chan struct{}

	mu      sync.Mutex
	watches map[question]*watch
}

// question identifies a recheck; equal questions share one. It keys on the credential's fingerprint, not its id:
// otherwise a forged secret with a real id would share, and end, the real holder's subscriptions.
type question struct{ credential, subject string }

// watch is a recheck with the subscriptions that end when it fails.
type watch struct {
	ctx           context.Context // values of one of the subscribers, for its credential
	check         func(ctx context.Context) error
	by            *tx.Subject // what decides the check with the caller's rights; nil for more than a proof says
	passed        tx.Proof    // by which check was last passed; zero for none. Of the recheck that is under way
	subscriptions map[*subscription]struct{}
}

// subscription is one call of Watch. end is called when the recheck fails.
type subscription struct{ end func(error) }

// NewSentinel returns a sentinel. It rechecks while Run runs.
func NewSentinel(db *tx.DB) *Sentinel {
	return &Sentinel{db: db, asked: make(chan struct{}, askAtOnce), watches: make(map[question]*watch)}
}

// Watch calls end, at most once, when check reports that the caller of ctx has lost the right or the credential: with
// PERMISSION_REVOKED for the right, UNAUTHENTICATED or TOKEN_EXPIRED for the credential. The returned function ends the
// watch; it may be called twice. A check that fails for another reason, such as an unreachable database, changes
// nothing.
func (s *Sentinel) Watch(
	ctx context.Context, subject string, check func(context.Context) error, end func(error),
) (forget func()) {
	return s.watch(ctx, subject, nil, check, end)
}

// WatchProved is Watch for a check that is not repeated while the proof of by, for the caller, is the one by which it
// passed: the rights, and the rows that by is about, decide it alone.
func (s *Sentinel) WatchProved(
	ctx context.Context, subject string, by tx.Subject, check func(context.Context) error, end func(error),
) (forget func()) {
	return s.watch(ctx, subject, &by, check, end)
}

func (s *Sentinel) watch(
	ctx context.Context, subject string, by *tx.Subject, check func(context.Context) error, end func(error),
) (forget func()) {
	credential, _ := tx.CredentialFrom(ctx)
	key := question{credential: credential.Fingerprint(), subject: subject}
	sub := &subscription{end: end}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[key]
	if w == nil {
		w = &watch{ctx: context.WithoutCancel(ctx), check: check, by: by,
			subscriptions: make(map[*subscription]struct{})}
		s.watches[key] = w
	}
	w.subscriptions[sub] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(w.subscriptions, sub)
		if len(w.subscriptions) == 0 && s.watches[key] == w {
			delete(s.watches, key)
		}
	}
}

// Run rechecks until ctx ends. It does not begin again before every recheck of the time before has ended.
func (s *Sentinel) Run(ctx context.Context) error {
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.recheckAll(ctx)
		}
	}
}

// recheckAll rechecks every question once.
func (s *Sentinel) recheckAll(ctx context.Context) {
	s.mu.Lock()
	open := make(map[question]*watch, len(s.watches))
	for key, w := range s.watches {
		open[key] = w
	}
	s.mu.Unlock()
	slots := make(chan struct{}, recheckAtOnce)
	var running sync.WaitGroup
	for key, w := range open {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			s.recheck(key, w)
		})
	}
	running.Wait()
}

// recheck checks one question, and ends its subscriptions when the right or the credential is lost.
func (s *Sentinel) recheck(key question, w *watch) {
	if s.unchanged(w) {
		return
	}
	err := s.ask(w)
	if !lost(err) {
		return
	}
	err = ended(err)
	s.mu.Lock()
	subscriptions := w.subscriptions
	w.subscriptions = make(map[*subscription]struct{})
	if s.watches[key] == w {
		delete(s.watches, key)
	}
	s.mu.Unlock()
	for sub := range subscriptions {
		sub.end(err)
	}
}

// unchanged reports whether the caller has the proof by which the check was passed.
func (s *Sentinel) unchanged(w *watch) bool {
	if !w.passed.Holds() {
		return false
	}
	ctx, cancel := context.WithTimeout(w.ctx, recheckTimeout)
	defer cancel()
	proof, err := s.db.Prove(ctx, *w.by)
	return err == nil && proof.Same(w.passed)
}

// ask makes the check, and notes by which proof it was passed where that decides it.
func (s *Sentinel) ask(w *watch) error {
	s.asked <- struct{}{}
	defer func() { <-s.asked }()
	// from now on: a watch that waits for its turn has not been asked
	ctx, cancel := context.WithTimeout(w.ctx, recheckTimeout)
	defer cancel()
	w.passed = tx.Proof{}
	if w.by == nil {
		return w.check(ctx)
	}
	with, proving := tx.WithProving(ctx, *w.by, tx.Proof{})
	err := w.check(with)
	if err != nil && !lost(err) {
		return w.check(ctx) // it may be the proof that failed
	}
	if proof, ok := proving.Proved(); ok && err == nil {
		w.passed = proof
	}
	return err
}

// ended maps a failed recheck to the error that subscribers see: FORBIDDEN and NOT_FOUND become PERMISSION_REVOKED,
// since they could see the object before; credential errors pass through.
func ended(err error) error {
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return fault.New(fault.PermissionRevoked, "the permission that this was opened with has ended").Because(err)
	}
	return err
}

// lost reports whether a recheck found that the right or the credential is lost, rather than finding nothing out.
func lost(err error) bool {
	return fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) ||
		fault.Is(err, fault.TokenExpired) || fault.Is(err, fault.PermissionRevoked)
}
