package dev

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// begins are the verbs that dispatch an operation.
func begins() []verb {
	on := func(kind adapter.Kind) func(*Session, []string, string) error {
		return func(s *Session, words []string, _ string) error { return s.onMembers(kind, words) }
	}
	return []verb{
		{"launch", "[COMPONENT=COUNT…]", "create an instance", (*Session).launch},
		{"scale", "COMPONENT=COUNT", "add members, or remove those of the highest index", (*Session).scale},
		{"drain", "MEMBER… [force]", "take members out of service", on(adapter.MemberDrain)},
		{"remove", "MEMBER… [force]", "remove members for good", on(adapter.MemberRemove)},
		{"recover", "MEMBER…", "bring failed members back", on(adapter.MemberRecover)},
		{"cordon", "MEMBER", "keep new work away from the member", on(adapter.MemberCordon)},
		{"uncordon", "MEMBER", "let the member take work again", on(adapter.MemberUncordon)},
		{"label", "MEMBER NAME=VALUE…", "give the member exactly these labels", (*Session).label},
		{"replace", "MEMBER [force]", "replace a member by a new one", (*Session).replace},
		{"upgrade", "VERSION [CONFIG]", "move to another version, and to a config as JSON", (*Session).upgrade},
		{"rollback", "", "return to the version and config before the upgrade", (*Session).rollback},
		{"decommission", "[force]", "remove the instance and all its members", (*Session).decommission},
		{"force", "", "dispatch the operation again with a higher attempt and force", (*Session).force},
		{"retry", "", "dispatch again with a higher attempt", func(s *Session, _ []string, _ string) error {
			return s.again(func(*adapter.Dispatch) {})
		}},
		{"cancel", "", "cancel the operation", (*Session).cancel},
	}
}

// settled waits for the operation before, and returns the present instance.
func (s *Session) settled() (*instance, error) {
	i, err := s.here()
	if err == nil {
		_, err = s.wait()
	}
	return i, err
}

// forceOf takes the word force off the end.
func forceOf(words []string) ([]string, bool) {
	if n := len(words); n > 0 && words[n-1] == "force" {
		return words[:n-1], true
	}
	return words, false
}

func (s *Session) launch(words []string, _ string) error {
	counts, err := s.counts(words)
	if err != nil {
		return err
	}
	if s.running() {
		if _, err := s.wait(); err != nil {
			return err
		}
	}
	var made *instance
	if err := s.try(func(c *trial.Check) {
		before := c.Suite.Options.Members
		defer func() { c.Suite.Options.Members = before }()
		if len(counts) > 0 {
			c.Suite.Options.Members = counts
		}
		made = &instance{Instance: c.NewInstance()}
	}); err != nil {
		return err
	}
	s.mu.Lock()
	s.instances, s.current = append(s.instances, made), made
	s.name(made)
	s.mu.Unlock()
	return s.dispatch(made, adapter.InstanceCreate, nil, false)
}

// running reports whether an operation is under way.
func (s *Session) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operation == nil {
		return false
	}
	select {
	case <-s.operation.ended:
		return false
	default:
		return true
	}
}

// dispatch begins an operation of the instance, with what the lines before have set: a deadline, a reply that is lost.
func (s *Session) dispatch(i *instance, kind adapter.Kind, change any, force bool, targets ...string) error {
	return s.try(func(c *trial.Check) {
		d := c.Dispatch(i.Instance, kind, targets...)
		if change != nil {
			d.Change = c.Encode(change)
		}
		if s.deadline != 0 {
			d.Deadline, s.deadline = time.Now().Add(s.deadline).UTC().Truncate(time.Millisecond), 0
		}
		d.Force = force
		s.send(c, &operation{of: i, dispatch: d, ended: make(chan struct{})})
	})
}

// send sends a dispatch, and has it followed when the adapter has taken it.
func (s *Session) send(c *trial.Check, next *operation) {
	d := &next.dispatch
	s.reach(d)
	s.say("operation", "%s %s of %s is dispatched, attempt %d", d.OperationID, d.Kind, d.Instance.Name, d.Attempt)
	if s.lose {
		s.lose = false
		l := trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(*d)}
		c.CutOff(l, nil)
		s.say("fault", "the reply was lost; the platform dispatches again")
	}
	next.last = c.Accept(*d)
	s.mu.Lock()
	defer s.mu.Unlock()
	next.last.Phase = "" // the follower tells it
	s.operation = next
}

// reach states of each member whether its node can be reached.
func (s *Session) reach(d *adapter.Dispatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.Members = slices.Clone(d.Members)
	for n := range d.Members {
		if s.away[d.Members[n].ID] != nil {
			away := false
			d.Members[n].Node.Reachable = &away
		}
	}
}

func (s *Session) onMembers(kind adapter.Kind, words []string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	words, force := forceOf(words)
	targets, err := i.members(words)
	if err != nil {
		return err
	}
	if kind == adapter.MemberRecover {
		for _, id := range targets {
			i.Set(id, func(m *adapter.Member) { m.Status = string(adapter.MemberFailed) })
		}
	}
	return s.dispatch(i, kind, nil, force, targets...)
}

// scale adds members, or removes those of the highest index.
func (s *Session) scale(words []string, _ string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	counts, err := s.counts(words)
	if err != nil {
		return err
	}
	if len(counts) != 1 {
		return badLine("scale one component at a time: COMPONENT=COUNT")
	}
	key := sorted(counts)[0]
	var of []adapter.Member
	for _, member := range i.Members {
		if member.ComponentKey == key {
			of = append(of, member)
		}
	}
	slices.SortFunc(of, func(a, b adapter.Member) int { return a.Index - b.Index })
	switch more := counts[key] - len(of); {
	case more == 0:
		return badLine("%s has %d members already", key, len(of))
	case more < 0:
		var targets []string
		for _, member := range of[counts[key]:] {
			targets = append(targets, member.ID)
		}
		return s.dispatch(i, adapter.MemberRemove, nil, false, targets...)
	default:
		return s.add(i, key, more)
	}
}

func (s *Session) add(i *instance, key string, count int) error {
	s.mu.Lock()
	var targets []string
	for _, member := range i.Grow(key, count) {
		targets = append(targets, member.ID)
	}
	s.name(i)
	s.mu.Unlock()
	change := adapter.AddChange{Components: []adapter.ComponentCount{{Key: key, Count: count}}}
	err := s.dispatch(i, adapter.MembersAdd, change, false, targets...)
	if err != nil {
		s.drop(i, targets)
	}
	return err
}

// drop forgets members that never came to be.
func (s *Session) drop(i *instance, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		i.Drop(id)
	}
}

func (s *Session) label(words []string, _ string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return badLine("name a member")
	}
	targets, err := i.members(words[:1])
	if err != nil {
		return err
	}
	labels := map[string]string{}
	for _, word := range words[1:] {
		name, value, found := strings.Cut(word, "=")
		if !found {
			return badLine("%q must be NAME=VALUE", word)
		}
		labels[name] = value
	}
	return s.dispatch(i, adapter.MemberLabel, adapter.LabelChange{Labels: labels}, false, targets...)
}

func (s *Session) replace(words []string, _ string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	words, force := forceOf(words)
	targets, err := i.members(words)
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return badLine("replace takes one member, not %d", len(targets))
	}
	at := slices.IndexFunc(i.Members, func(m adapter.Member) bool { return m.ID == targets[0] })
	s.mu.Lock()
	fresh := i.Grow(i.Members[at].ComponentKey, 1)[0]
	s.name(i)
	s.mu.Unlock()
	err = s.dispatch(i, adapter.MemberReplace, adapter.ReplaceChange{ReplacementID: fresh.ID}, force, targets[0])
	if err != nil {
		s.drop(i, []string{fresh.ID})
	}
	return err
}

func (s *Session) decommission(words []string, _ string) error {
	i, err := s.settled()
	if err != nil {
		return err
	}
	_, force := forceOf(words)
	return s.dispatch(i, adapter.InstanceDecommission, nil, force)
}

func (s *Session) force([]string, string) error {
	return s.again(func(d *adapter.Dispatch) { d.Force = true })
}

// again dispatches the present operation once more, with a higher attempt and a new token.
func (s *Session) again(change func(*adapter.Dispatch)) error {
	s.mu.Lock()
	held := s.operation
	s.mu.Unlock()
	if held == nil {
		return badLine("no operation has been dispatched yet")
	}
	return s.try(func(c *trial.Check) {
		d := held.dispatch
		d.Attempt++
		d.Deadline = time.Now().Add(c.Bounds.Operation).UTC().Truncate(time.Millisecond)
		d.Platform = c.Grant(held.of.Instance, d.OperationID).Access()
		change(&d)
		s.send(c, &operation{of: held.of, dispatch: d, ended: make(chan struct{})})
	})
}

func (s *Session) cancel([]string, string) error {
	s.mu.Lock()
	held := s.operation
	s.mu.Unlock()
	if held == nil {
		return badLine("no operation has been dispatched yet")
	}
	return s.try(func(c *trial.Check) {
		result := c.Resolve(held.dispatch.OperationID, held.dispatch.Attempt)
		s.say("fault", "the adapter answered the cancel with %s %s", result.Outcome, result.Message)
	})
}
