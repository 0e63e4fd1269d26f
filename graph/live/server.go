package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
)

// maxGroups bounds the groups of a process; a subscription that would need one more is refused.
const maxGroups = 20_000

// Source is what the server needs to know of one subscription field.
type Source interface {
	// Open authorises the caller of ctx and says which feed the field's arguments name.
	Open(ctx context.Context, arguments map[string]any) (*Opened, error)
}

// Opened is an authorised subscription.
type Opened struct {
	// Feed names what is watched, with whatever of the caller's rights shapes it.
	Feed string
	// Topic is what the hub wakes.
	Topic string
	// Start is the place of the caller's cursor.
	Start event.Position
	// Replay reads a page after a place as the caller, for its replay.
	Replay func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error)
	// Read reads a page after a place for everybody in the group.
	Read func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error)
	// Position is where an event stands in this feed.
	Position func(*event.Event) event.Position
	// Delayed says that a woken-up commit may become readable a little later.
	Delayed bool
	// Recheck asks again whether the caller may watch; nil error means yes.
	Recheck func(ctx context.Context) error
}

// Server serves subscriptions; it is the transport's Streams.
type Server struct {
	Engine *transport.Engine
	Hub    *event.Hub
	Log    *slog.Logger
	// Sentinel asks again, while a subscription is open, whether its caller may still watch.
	Sentinel *Sentinel
	// Sources are the fields served, by name.
	Sources map[string]Source

	mu     sync.Mutex
	groups map[string]*group
	ctx    context.Context
}

// Run owns the groups until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx, s.groups = ctx, make(map[string]*group)
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
func (s *Server) Open(ctx context.Context, op *graphql.OperationContext, sink transport.Sink) (stop func(), ok bool, err error) {
	field := rootField(op)
	if field == nil || s.Sources[field.Name] == nil {
		return nil, false, nil
	}
	opened, err := s.Sources[field.Name].Open(ctx, field.ArgumentMap(op.Variables))
	if err != nil {
		return nil, true, err
	}
	g, err := s.enter(ctx, op, opened)
	if err != nil {
		return nil, true, err
	}
	member := &subscriber{sink: sink, at: opened.Start}
	go s.serve(ctx, g, opened, member, op)
	forget := s.Sentinel.Watch(ctx, opened.Feed, opened.Recheck, sink.Fail)
	return func() {
		forget()
		g.leave(member)
		s.exit(g)
	}, true, nil
}

// serve replays until the subscriber can join the group.
func (s *Server) serve(ctx context.Context, g *group, opened *Opened, member *subscriber, op *graphql.OperationContext) {
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
		page, err := opened.Replay(ctx, member.at, pageSize)
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
func (s *Server) replay(ctx context.Context, own *encoder, opened *Opened, member *subscriber, page []*event.Event) bool {
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
	member.at = opened.Position(page[len(page)-1])
	return true
}

// enter finds or makes the group of an operation and counts its user.
func (s *Server) enter(ctx context.Context, op *graphql.OperationContext, opened *Opened) (*group, error) {
	key, err := groupKey(op, opened.Feed)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the server is not serving subscriptions now")
	}
	if g := s.groups[key]; g != nil {
		g.users++
		return g, nil
	}
	if len(s.groups) >= maxGroups {
		return nil, fault.New(fault.LimitExceeded, "too many different subscriptions are open")
	}
	g := s.newGroup(ctx, key, op, opened)
	s.groups[key] = g
	return g, nil
}

// newGroup makes a group. What it executes for all of its members is executed by nobody: with the first
// member's credential it would outlive that member's rights and reach further than the others'. So nothing that an
// operation selects of an event may ask the database, and nothing does: see TestWhatAGroupExecutesAsksForNothing.
func (s *Server) newGroup(ctx context.Context, key string, op *graphql.OperationContext, opened *Opened) *group {
	running, stop := context.WithCancel(s.ctx)
	nobody := authz.WithRequest(s.ctx, authz.Request(ctx))
	g := &group{
		key: key, log: s.Log, stop: stop, users: 1, members: make(map[*subscriber]struct{}),
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

// exit ends a group that nobody uses any more.
func (s *Server) exit(g *group) {
	s.mu.Lock()
	g.users--
	last := g.users == 0 && s.groups[g.key] == g
	if last {
		delete(s.groups, g.key)
	}
	s.mu.Unlock()
	if last { // outside of the lock: a group that is encoding is waited for
		g.end()
	}
}

// Groups is how many groups there are now.
func (s *Server) Groups() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups)
}

// groupKey joins what shapes a group's bytes: the document, its operation, its variables without
// the cursor, and the feed.
func groupKey(op *graphql.OperationContext, feed string) (string, error) {
	variables := make(map[string]any, len(op.Variables))
	for name, value := range op.Variables {
		variables[name] = value
	}
	for _, name := range cursorVariables(op) {
		delete(variables, name)
	}
	encoded, err := json.Marshal(variables)
	if err != nil {
		return "", fmt.Errorf("encode variables: %w", err)
	}
	sum := sha256.New()
	for _, part := range []string{op.RawQuery, op.OperationName, string(encoded), feed} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return string(sum.Sum(nil)), nil
}

// cursorVariables names the variables that stand for the field's `after`.
func cursorVariables(op *graphql.OperationContext) []string {
	var names []string
	for _, selection := range op.Operation.SelectionSet {
		field, ok := selection.(*ast.Field)
		if !ok {
			continue
		}
		if after := field.Arguments.ForName("after"); after != nil && after.Value.Kind == ast.Variable {
			names = append(names, after.Value.Raw)
		}
	}
	return names
}

// rootField is the operation's one field; nil when it is not plainly there.
func rootField(op *graphql.OperationContext) *ast.Field {
	if op.Operation == nil || op.Operation.Operation != ast.Subscription || len(op.Operation.SelectionSet) != 1 {
		return nil
	}
	field, _ := op.Operation.SelectionSet[0].(*ast.Field)
	return field
}
