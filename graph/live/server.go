package live

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
)

const (
	// maxGroups bounds the groups of a process. A subscription that needs one more is refused.
	maxGroups = 20_000
	// subjectGroups bounds those that one subject uses, so that it cannot take them all.
	subjectGroups = 2_000
)

// Source opens the subscriptions of one field.
type Source interface {
	// Open authorises the caller of ctx and returns the feed that the field's arguments name.
	Open(ctx context.Context, arguments map[string]any) (*Opened, error)
}

// Opened is an authorised subscription.
type Opened struct {
	// Feed names what is watched, with those of the caller's rights that decide its content.
	Feed string
	// Topic is the hub's topic of its wake-ups.
	Topic string
	// Start is the position of the caller's cursor.
	Start event.Position
	// Replay reads a page after a position with the caller's rights, for its replay.
	Replay func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error)
	// Read reads a page after a position for all members of the group.
	Read func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error)
	// Position returns the position of an event in this feed.
	Position func(*event.Event) event.Position
	// Delayed states that a commit may become readable a little later than its wake-up.
	Delayed bool
	// By is what decides Recheck with the caller's rights.
	By tx.Subject
	// Recheck returns nil while the caller may still watch.
	Recheck func(ctx context.Context) error
}

// Server serves subscriptions. It is the transport's Streams.
type Server struct {
	Engine *transport.Engine
	Hub    *event.Hub
	Log    *slog.Logger
	// Sentinel rechecks, while a subscription is open, whether its caller may still watch.
	Sentinel *Sentinel
	// Sources are the fields served, by name.
	Sources map[string]Source
	// Subject names whose a subscription is, for SubjectGroups; nil or "" is not counted.
	Subject func(ctx context.Context) string
	// SubjectGroups bounds the groups that one subject uses; 0 means 2,000.
	SubjectGroups int
	// Metrics notes how long news takes from its hint to the subscribers; nil notes nothing.
	Metrics *metrics.Set

	mu     sync.Mutex
	groups map[string]*group
	uses   subjects
	ctx    context.Context
}

// Run owns the groups until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx, s.groups, s.uses = ctx, make(map[string]*group), make(subjects)
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.groups))
	clear(s.groups)
	s.mu.Unlock()
	for _, g := range left {
		g.end()
	}
	return nil
}

// Open serves one subscription operation, if its field is one of the sources.
func (s *Server) Open(
	ctx context.Context, op *graphql.OperationContext, sink transport.Sink,
) (stop func(), ok bool, err error) {
	field := rootField(op)
	if field == nil || s.Sources[field.Name] == nil {
		return nil, false, nil
	}
	opened, err := s.Sources[field.Name].Open(ctx, field.ArgumentMap(op.Variables))
	if err != nil {
		return nil, true, err
	}
	whose := ""
	if s.Subject != nil {
		whose = s.Subject(ctx)
	}
	g, err := s.enter(ctx, whose, op, opened)
	if err != nil {
		return nil, true, err
	}
	member := &subscriber{sink: sink, cursor: opened.Start}
	go s.serve(ctx, g, opened, member, op)
	forget := s.Sentinel.WatchProved(ctx, opened.Feed, opened.By, opened.Recheck, sink.Fail)
	return func() {
		forget()
		g.leave(member)
		s.exit(g, whose)
	}, true, nil
}

// serve replays until the subscriber can join the group.
func (s *Server) serve(
	ctx context.Context, g *group, opened *Opened, member *subscriber, op *graphql.OperationContext,
) {
	var own *encoder
	defer func() {
		if own != nil {
			own.close()
		}
	}()
	for ctx.Err() == nil {
		if g.joinEarly(member) {
			g.poke()
			return
		}
		page, err := opened.Replay(ctx, member.cursor, pageSize)
		if err != nil {
			member.sink.Fail(ended(err))
			return
		}
		if len(page) == 0 {
			if g.join(member) {
				g.poke()
				return
			}
			continue
		}
		if own == nil {
			own = newEncoder(ctx, s.Engine, op)
		}
		if !s.replay(ctx, own, opened, member, page) {
			return
		}
	}
}

// replay sends a page to one subscriber, no faster than it reads.
func (s *Server) replay(
	ctx context.Context, own *encoder, opened *Opened, member *subscriber, page []*event.Event,
) bool {
	payloads := make([][]byte, len(page))
	for i, ev := range page {
		payload, err := own.encode(ev)
		if err != nil {
			member.sink.Fail(err)
			return false
		}
		payloads[i] = payload
	}
	for len(payloads) > 0 {
		if err := transport.Pace(ctx, member.sink); err != nil {
			return false
		}
		n := min(len(payloads), pageSize/4)
		if !member.sink.SendAll(payloads[:n]) {
			return false
		}
		payloads = payloads[n:]
	}
	member.cursor = opened.Position(page[len(page)-1])
	return true
}

// enter returns the group of an operation, which it creates for the first user, and counts the user.
func (s *Server) enter(ctx context.Context, whose string, op *graphql.OperationContext, opened *Opened) (*group,
	error) {
	key, err := groupKey(op, opened.Feed)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the server is not serving subscriptions now")
	}
	if limit := cmp.Or(s.SubjectGroups, subjectGroups); s.uses.full(whose, key, limit) {
		return nil, fault.New(fault.LimitExceeded,
			"%d different subscriptions of yours are open: end some, or watch projects in place of instances", limit)
	}
	g := s.groups[key]
	switch {
	case g != nil:
		g.users++
	case len(s.groups) >= maxGroups:
		return nil, fault.New(fault.LimitExceeded, "too many different subscriptions are open")
	default:
		g = s.newGroup(ctx, key, op, opened)
		s.groups[key] = g
	}
	s.uses.add(whose, key)
	return g, nil
}

// newGroup returns a running group. It executes for all of its members without any credential: with the first member's
// it would outlive that member's rights and reach further than the others'. So no field that an operation selects of an
// event may read the database, and none does: see TestWhatAGroupExecutesAsksForNothing.
func (s *Server) newGroup(ctx context.Context, key string, op *graphql.OperationContext, opened *Opened) *group {
	running, stop := context.WithCancel(s.ctx)
	nobody := authz.WithRequest(s.ctx, authz.Request(ctx))
	g := &group{
		key: key, log: s.Log, metrics: s.Metrics, stop: stop, users: 1, members: make(map[*subscriber]struct{}),
		wake: s.Hub.Wait(opened.Topic), begin: func() *encoder { return newEncoder(nobody, s.Engine, op) },
		feed: feed{
			topic: opened.Topic, position: opened.Position, delayed: opened.Delayed,
			read: func(ctx context.Context, after event.Position) ([]*event.Event, error) {
				return opened.Read(ctx, after, pageSize)
			},
		},
	}
	go g.run(running)
	return g
}

// exit stops counting a user of a group, and ends a group without users.
func (s *Server) exit(g *group, whose string) {
	s.mu.Lock()
	s.uses.remove(whose, g.key)
	g.users--
	last := g.users == 0 && s.groups[g.key] == g
	if last {
		delete(s.groups, g.key)
	}
	s.mu.Unlock()
	if last { // outside of the lock: end waits for a group that is encoding
		g.end()
	}
}

// Subscribers returns the number of subscriptions in groups.
func (s *Server) Subscribers() (subscribers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups { // at most maxGroups
		subscribers += g.users
	}
	return subscribers
}

// Groups returns the number of groups.
func (s *Server) Groups() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups)
}
