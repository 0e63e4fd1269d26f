// Package dev is the conformance suite's platform left running: it starts an adapter, or uses one that runs, carries
// out its node tasks in sandboxes, dispatches operations and causes faults on request, and reports each event as it
// happens, with the platform's judgement of each end.
package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/run"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// ErrLine is wrapped by every error about a line that cannot be carried out as it is.
var ErrLine = errors.New("the line cannot be carried out")

// ErrUnexpected is wrapped when something is not as an expect line says.
var ErrUnexpected = errors.New("it is not as expected")

// ErrQuit is returned for the line that ends a session.
var ErrQuit = errors.New("the session ends")

// tick is how often the session looks for what is new.
const tick = 50 * time.Millisecond

// Event is one line of the timeline.
type Event struct {
	// At is when it was seen.
	At time.Time `json:"at"`
	// Kind is what it is of: operation, member, task, adapter, fault, evidence, verdict, answer or failure.
	Kind string `json:"kind"`
	// Text describes the event for a person.
	Text string `json:"text"`
}

// Session is an adapter with a platform of its own. Its methods are called from one goroutine.
type Session struct {
	suite *trial.Suite
	stop  func() error
	end   context.CancelFunc
	work  sync.WaitGroup
	told  sync.Mutex
	tell  func(Event)

	// wire is locked while a request to the adapter is under way, and while the adapter is killed or started.
	wire sync.Mutex

	// mu guards what follows, which both the caller and the follower use.
	mu        sync.Mutex
	instances []*instance
	current   *instance
	operation *operation
	seen      int
	open      map[string]standin.Entry
	misfit    string
	away      map[string]*standin.Rule // by member
	names     map[string]string        // of members
	rules     []*standin.Rule

	// What the next operation comes with.
	deadline time.Duration
	lose     bool
}

// instance is one app instance with the version before.
type instance struct {
	*trial.Instance
	before *adapter.VersionConfig
}

// operation is one operation that was dispatched.
type operation struct {
	of       *instance
	dispatch adapter.Dispatch
	last     adapter.Status
	changed  bool // something was seen of it
	verdict  error
	ended    chan struct{}
}

// Start starts the adapter with a platform of its own. It calls tell for one event at a time; Close ends everything.
func Start(ctx context.Context, options run.Options, tell func(Event)) (*Session, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	s := &Session{
		tell: tell, end: end, open: map[string]standin.Entry{}, away: map[string]*standin.Rule{},
		names: map[string]string{},
		suite: &trial.Suite{
			Options: options, Bounds: options.Bounds.Full(), Ctx: ctx, Results: map[string]run.Outcome{},
			Acted: map[string]bool{},
		},
	}
	stop, err := s.suite.SetUp()
	s.stop = stop
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d := s.suite.Description
	s.say("adapter", "%s, build %s, answers at %s; the platform is %s", d.Name, d.Build, s.suite.URL,
		s.suite.Platform.URL)
	s.work.Go(func() { s.follow(ctx) })
	return s, nil
}

// Close kills the adapter where the session started it, ends every process of every member and deletes what they wrote.
func (s *Session) Close() error {
	s.end()
	s.work.Wait()
	return s.stop()
}

// Do carries out one line, such as "launch peer=2" or "kill". An empty line and one that begins with # do nothing.
func (s *Session) Do(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	for _, one := range verbs() {
		if one.name != words[0] {
			continue
		}
		_, rest, _ := strings.Cut(strings.TrimSpace(line), words[0])
		return one.do(s, words[1:], strings.TrimSpace(rest))
	}
	return badLine("there is no verb %q; help lists them", words[0])
}

func badLine(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLine, fmt.Sprintf(format, args...))
}

// Help returns every verb with its arguments and what it does.
func Help() string {
	var text strings.Builder
	for _, one := range verbs() {
		fmt.Fprintf(&text, "  %-38s %s\n", strings.TrimSpace(one.name+" "+one.arguments), one.help)
	}
	return text.String()
}

// say reports an event.
func (s *Session) say(kind, format string, args ...any) {
	s.told.Lock()
	defer s.told.Unlock()
	s.tell(Event{At: time.Now(), Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// try does work that sends requests. On failure it reports the last exchange and the log, and returns the reason.
func (s *Session) try(work func(*trial.Check)) error {
	result := s.suite.Once(s.suite.Ctx, "dev", work)
	if err := s.suite.Ctx.Err(); err != nil {
		return err
	}
	if result.Outcome == run.Passed {
		return nil
	}
	for _, exchange := range result.Exchanges[max(0, len(result.Exchanges)-1):] {
		s.say("failure", "sent   %s", exchange.Sent)
		s.say("failure", "answer %s", exchange.Came)
	}
	for _, line := range result.Log {
		s.say("failure", "log    %s", line)
	}
	return errors.New(result.Reason)
}

// here returns the present instance.
func (s *Session) here() (*instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, badLine("there is no instance yet: launch one")
	}
	return s.current, nil
}

// snapshot returns the present instance as it is now, for requests while an operation goes on.
func (s *Session) snapshot() (*instance, error) {
	i, err := s.here()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *i.Instance
	now.Members = slices.Clone(i.Members)
	return &instance{Instance: &now}, nil
}

// Settle waits for the end of the operation that is under way, if there is one.
func (s *Session) Settle() error {
	if !s.running() {
		return nil
	}
	_, err := s.wait()
	return err
}

// nameOf returns what a member is called: its component's key and index. The session is locked.
func (s *Session) nameOf(id string) string {
	if name, known := s.names[id]; known {
		return name
	}
	return id
}

// name keeps the names of an instance's members, which are also needed after the members have left.
func (s *Session) name(i *instance) {
	for _, member := range i.Members {
		s.names[member.ID] = memberName(member)
	}
}

func memberName(member adapter.Member) string {
	return fmt.Sprintf("%s-%d", member.ComponentKey, member.Index)
}

// members returns the members that words name, by name or id.
func (i *instance) members(words []string) (ids []string, err error) {
	for _, word := range words {
		at := slices.IndexFunc(i.Members, func(m adapter.Member) bool { return m.ID == word || memberName(m) == word })
		if at < 0 {
			var names []string
			for _, member := range i.Members {
				names = append(names, memberName(member))
			}
			return nil, badLine("%q is not a member; the members are %s", word, strings.Join(names, ", "))
		}
		ids = append(ids, i.Members[at].ID)
	}
	if len(ids) == 0 {
		return nil, badLine("name a member")
	}
	return ids, nil
}

// wait waits until the present operation, if there is one, has ended and was judged.
func (s *Session) wait() (*operation, error) {
	s.mu.Lock()
	held := s.operation
	s.mu.Unlock()
	if held == nil {
		return nil, badLine("no operation has been dispatched yet")
	}
	patience := time.NewTimer(time.Until(held.dispatch.Deadline) + s.suite.Bounds.Operation)
	defer patience.Stop()
	select {
	case <-held.ended:
		return held, nil
	case <-s.suite.Ctx.Done():
		return nil, s.suite.Ctx.Err()
	case <-patience.C:
		return nil, fmt.Errorf("%s has not ended long after its deadline", held.dispatch.Kind)
	}
}

// counts reads component=count words; a bare count is of the only component.
func (s *Session) counts(words []string) (map[string]int, error) {
	counts := map[string]int{}
	for _, word := range words {
		var count int
		key, text, found := strings.Cut(word, "=")
		if !found {
			key, text = s.suite.App.Components[0].Key, word
		}
		if _, err := fmt.Sscanf(text, "%d", &count); err != nil || count < 0 || count > 64 {
			return nil, badLine("%q must be COMPONENT=COUNT, 0 to 64", word)
		}
		if !slices.ContainsFunc(s.suite.App.Components, func(c adapter.Component) bool { return c.Key == key }) {
			return nil, badLine("the app has no component %q", key)
		}
		counts[key] = count
	}
	return counts, nil
}

// sorted returns a map's keys in order.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
