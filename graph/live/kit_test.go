package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph"
	"github.com/gpuaas/app-platform/graph/denial"
	"github.com/gpuaas/app-platform/graph/feed"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/adapter"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/node"
	"github.com/gpuaas/app-platform/service/task"
	"github.com/gpuaas/app-platform/transport"
)

// The bounds of every wait for a state.
const (
	patience = 60 * time.Second
	tick     = 10 * time.Millisecond
)

// bench is a project with an instance, and a server of live subscriptions over the real executor,
// sources and hub.
type bench struct {
	*platformtest.Kit
	t       *testing.T
	tenant  *db.Tenant
	project *db.Project
	made    *db.Instance
	viewer  *db.User
	admin   context.Context
	engine  *transport.Engine
	counts  *counts
	server  *live.Server
	watch   *live.Sentinel
}

func newBench(t *testing.T, extensions ...graphql.HandlerExtension) *bench {
	t.Helper()
	b := &bench{Kit: platformtest.New(t), t: t, counts: &counts{}}
	b.tenant = b.Tenant()
	b.project = b.Project(b.tenant)
	_, stored := b.Launchable(b.project, "apps")
	computer, _ := b.Node(1)
	b.made = b.Instance(b.project, stored, lifecycle.InstanceRunning, b.Allocation(b.project, computer))
	b.viewer = b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))
	b.admin = b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	resolver := &graph.Resolver{
		DB: b.DB, Instances: &instance.Service{DB: b.DB}, Identity: &identity.Service{DB: b.DB},
		Catalog: &catalog.Service{DB: b.DB}, Entitlements: &entitlement.Service{DB: b.DB},
		Artifacts: &artifact.Service{DB: b.DB}, Adapters: &adapter.Service{DB: b.DB},
		Allocations: &allocation.Service{DB: b.DB},
		Nodes:       &node.Service{DB: b.DB}, Tasks: &task.Service{DB: b.DB, Hub: b.Hub},
		Progress: &live.Progress{DB: b.DB, Hub: b.Hub},
	}
	engine, err := transport.NewEngine(transport.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: resolver}), Present: denial.Present, Log: quiet(),
		Extensions: append([]graphql.HandlerExtension{graph.Extension{Resolver: resolver}}, extensions...),
	})
	require.NoError(t, err)
	feeds, err := event.NewFeeds(t.Context(), b.DB.Worker())
	require.NoError(t, err)
	sources := feed.Sources(resolver.DB, resolver.Instances, feeds)
	for name, source := range sources {
		sources[name] = counted{source, b.counts}
	}
	b.engine, b.watch = engine, live.NewSentinel(b.DB)
	b.server = &live.Server{Engine: engine, Hub: b.Hub, Log: quiet(), Sentinel: b.watch, Sources: sources}
	b.run(b.server.Run)
	b.run(b.watch.Run)
	b.until(func() bool { // the server serves once it runs
		stop, err := b.subscribe(b.admin, timeline, "", newSink())
		if err == nil {
			stop()
		}
		return err == nil
	})
	return b
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// run runs a part until the test ends, or until stop is called.
func (b *bench) run(part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = part(ctx)
	}()
	stop = func() { cancel(); <-ended }
	b.t.Cleanup(stop)
	return stop
}

// counts is how often the sources were read.
type counts struct {
	mu            sync.Mutex
	reads, replay int
	asked         []time.Time
}

func (c *counts) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

func (c *counts) get() (reads, replay int, asked []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads, c.replay, append([]time.Time(nil), c.asked...)
}

// counted is a source whose reads are counted.
type counted struct {
	live.Source
	*counts
}

func (c counted) Open(ctx context.Context, arguments map[string]any) (*live.Opened, error) {
	opened, err := c.Source.Open(ctx, arguments)
	if err != nil {
		return nil, err
	}
	read, replay, recheck := opened.Read, opened.Replay, opened.Recheck
	opened.Read = func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
		c.add(&c.counts.reads)
		return read(ctx, after, limit)
	}
	opened.Replay = func(ctx context.Context, after event.Position, limit int) ([]*event.Event, error) {
		c.add(&c.counts.replay)
		return replay(ctx, after, limit)
	}
	opened.Recheck = func(ctx context.Context) error {
		c.mu.Lock()
		c.asked = append(c.asked, time.Now())
		c.mu.Unlock()
		return recheck(ctx)
	}
	return opened, nil
}

// append writes events with the messages, in one transaction.
func (b *bench) append(messages ...string) {
	b.t.Helper()
	require.NoError(b.t, b.DB.Write(b.admin, func(ctx context.Context, t *tx.Tx) error {
		row := *b.made
		drafts := make([]event.Draft, len(messages))
		for i, message := range messages {
			drafts[i] = event.Draft{Type: lifecycle.EventInstanceHealthy, Message: message}
		}
		return event.Append(ctx, t, &row, drafts...)
	}))
}

// told is an event as a subscriber receives it.
type told struct {
	Seq             int
	Cursor, Message string
}

// sink is a subscriber's queue that the test looks into. limit is how many payloads it holds before
// its socket is cut; 0 for any number.
type sink struct {
	limit int

	mu     sync.Mutex
	events []told
	err    error
	broken error // a payload that could not be read
	closed bool
	done   chan struct{}
}

func newSink() *sink { return &sink{done: make(chan struct{})} }

func (s *sink) Send(payload []byte) bool { return s.SendAll([][]byte{payload}) }

func (s *sink) SendAll(payloads [][]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.limit > 0 && len(s.events)+len(payloads) > s.limit {
		s.close(nil)
		return false
	}
	for _, payload := range payloads {
		var content struct {
			Data   map[string]told
			Errors []json.RawMessage
		}
		if err := json.Unmarshal(payload, &content); err != nil || len(content.Errors) > 0 || len(content.Data) != 1 {
			s.broken = fmt.Errorf("%s: %w", payload, err)
		}
		for _, e := range content.Data {
			s.events = append(s.events, e)
		}
	}
	return true
}

// close ends the sink; the lock is held.
func (s *sink) close(err error) {
	if !s.closed {
		s.closed, s.err = true, err
		close(s.done)
	}
}

func (s *sink) Complete() { s.Fail(nil) }

func (s *sink) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(err)
}

func (s *sink) Done() <-chan struct{} { return s.done }

func (s *sink) got() []told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]told(nil), s.events...)
}

// ended waits for the end and answers its error.
func (s *sink) ended(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(within):
		require.FailNow(t, "the subscription did not end")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

const (
	timeline = `subscription($i: ID!, $a: String) { instanceTimeline(instanceId: $i, after: $a) { seq cursor message } }`
	activity = `subscription($p: ID!, $a: String) { projectActivity(projectId: $p, after: $a) { seq cursor message } }`
)

// variables of either subscription.
func (b *bench) variables(after string) map[string]any {
	return map[string]any{"i": string(b.made.ID), "p": string(b.project.ID), "a": after}
}

// subscribe opens a subscription as the caller of ctx into the sink. The answered function ends it
// as its socket would.
func (b *bench) subscribe(ctx context.Context, document, after string, into *sink) (stop func(), err error) {
	variables := b.variables(after)
	if strings.Contains(document, "$i") {
		delete(variables, "p")
	} else {
		delete(variables, "i")
	}
	return b.open(ctx, document, variables, into)
}

// subscribeTo opens a subscription to a project's activity.
func (b *bench) subscribeTo(ctx context.Context, project ids.ID, into *sink) (stop func(), err error) {
	return b.open(ctx, activity, map[string]any{"p": string(project)}, into)
}

func (b *bench) open(ctx context.Context, document string, variables map[string]any, into *sink) (stop func(),
	err error) {
	ctx, cancel := context.WithCancel(ctx)
	op, list := b.engine.Prepare(ctx, &graphql.RawParams{Query: document, Variables: variables})
	if list != nil {
		cancel()
		return nil, list
	}
	end, ok, err := b.server.Open(graphql.WithOperationContext(ctx, op), op, into)
	if err != nil {
		cancel()
		return nil, err
	}
	if !ok {
		cancel()
		return nil, fmt.Errorf("nobody serves the subscription")
	}
	return sync.OnceFunc(func() {
		into.Complete()
		cancel()
		end()
	}), nil
}

// watching subscribes and ends with the test.
func (b *bench) watching(ctx context.Context, document, after string) *sink {
	b.t.Helper()
	into := newSink()
	stop, err := b.subscribe(ctx, document, after, into)
	require.NoError(b.t, err)
	b.t.Cleanup(stop)
	return into
}

// until waits for a state.
func (b *bench) until(state func() bool) {
	b.t.Helper()
	require.Eventually(b.t, state, patience, tick)
}
