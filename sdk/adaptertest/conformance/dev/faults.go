package dev

import (
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// faults are the verbs that bring one about.
func faults() []verb {
	return []verb{
		{"kill", "", "kill -9 the adapter, and start it again", func(s *Session, _ []string, _ string) error {
			if err := s.halt(); err != nil {
				return err
			}
			return s.resume()
		}},
		{"stop", "", "kill -9 the adapter, and do not start it again",
			func(s *Session, _ []string, _ string) error { return s.halt() }},
		{"start", "", "start the adapter again", func(s *Session, _ []string, _ string) error { return s.resume() }},
		{"lose", "", "lose the reply to the next dispatch, and dispatch it again",
			func(s *Session, _ []string, _ string) error {
				s.lose = true
				return nil
			}},
		{"deadline", "SECONDS", "give the next operation so many seconds", (*Session).soon},
		{"hold", "[COUNT]", "hold back node tasks after COUNT (default 0) that change something", (*Session).hold},
		{"caught", "", "wait until a node task is held back; later ones pass", (*Session).caught},
		{"fail", "[COUNT]", "fail node tasks after COUNT (default 0) that change something", (*Session).fail},
		{"release", "", "end hold and fail", (*Session).release},
		{"away", "MEMBER|NODE", "make the node stop answering", (*Session).goAway},
		{"back", "MEMBER|NODE", "make the node answer again", (*Session).comeBack},
		{"wipe", "MEMBER", "delete all that the member has on its node", (*Session).wipe},
	}
}

// halt kills the adapter.
func (s *Session) halt() error {
	if s.suite.Options.Launcher == nil {
		return badLine("the adapter was not started here, so it cannot be killed: give the command that starts it")
	}
	s.wire.Lock()
	defer s.wire.Unlock()
	err := s.suite.Options.Launcher.Kill()
	s.suite.HTTP.CloseIdleConnections()
	if err == nil {
		s.say("fault", "the adapter was killed")
	}
	return err
}

// resume starts it again and waits until it answers.
func (s *Session) resume() error {
	if s.suite.Options.Launcher == nil {
		return badLine("the adapter was not started here: give the command that starts it")
	}
	s.wire.Lock()
	defer s.wire.Unlock()
	err := s.suite.Launch()
	if err == nil {
		_, err = s.suite.AwaitAnswer()
	}
	if err == nil {
		s.say("adapter", "it answers again")
	}
	return err
}

func (s *Session) soon(words []string, _ string) error {
	if len(words) != 1 {
		return badLine("deadline needs a number of seconds")
	}
	seconds, err := strconv.ParseFloat(words[0], 64)
	if err != nil || seconds <= 0 || seconds > 3600 {
		return badLine("%q must be seconds, at most 3600", words[0])
	}
	s.deadline = time.Duration(seconds * float64(time.Second))
	return nil
}

// rule adds a rule for the node tasks of every operation from now on.
func (s *Session) rule(words []string, fate standin.Fate) error {
	skip := 0
	if len(words) > 0 {
		var err error
		if skip, err = strconv.Atoi(words[0]); err != nil || skip < 0 {
			return badLine("%q must be a number of node tasks", words[0])
		}
	}
	s.rules = append(s.rules, s.suite.Platform.Add(&standin.Rule{Fate: fate, Skip: skip}))
	return nil
}

func (s *Session) hold(words []string, _ string) error { return s.rule(words, standin.Hold) }

func (s *Session) fail(words []string, _ string) error { return s.rule(words, standin.Fail) }

// caught waits until the newest rule has caught a node task, or the operation has ended without one.
func (s *Session) caught([]string, string) error {
	if len(s.rules) == 0 {
		return badLine("nothing is held back: use hold or fail first")
	}
	s.mu.Lock()
	held := s.operation
	s.mu.Unlock()
	if held == nil {
		return badLine("no operation has been dispatched yet")
	}
	rule := s.rules[len(s.rules)-1]
	select {
	case <-rule.Caught():
		rule.Close()
		s.say("fault", "a node task is held back or failed")
		return nil
	case <-held.ended:
		return unexpected("%s ended %s before one of its node tasks was held back", held.dispatch.Kind, held.last.State)
	case <-s.suite.Ctx.Done():
		return s.suite.Ctx.Err()
	}
}

func (s *Session) release([]string, string) error {
	for _, rule := range s.rules {
		rule.Lift()
	}
	s.rules = nil
	s.suite.Platform.Forget()
	return nil
}

// nodeMembers returns the members that a word names: one by its name, or all of a node. The session is locked.
func (s *Session) nodeMembers(words []string) (ids []string, err error) {
	if s.current == nil || len(words) != 1 {
		return nil, badLine("name one member or node of an instance")
	}
	for _, one := range s.instances {
		for _, member := range one.Members {
			if member.Node.Name == words[0] {
				ids = append(ids, member.ID)
			}
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	return s.current.members(words)
}

func (s *Session) goAway(words []string, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.nodeMembers(words)
	for _, id := range ids {
		if s.away[id] == nil {
			s.away[id] = s.suite.Platform.Add(&standin.Rule{Member: id, Fate: standin.Lose, Looks: true})
			s.say("fault", "the node of %s is away", s.nameOf(id))
		}
	}
	return err
}

func (s *Session) comeBack(words []string, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.nodeMembers(words)
	for id := range s.away { // a member that has gone is no member any more, and its node is one all the same
		if err != nil && len(words) == 1 && s.names[id] == words[0] {
			ids, err = []string{id}, nil
			if wiped := s.suite.Platform.Wipe(id); wiped != nil {
				return wiped
			}
			s.say("verdict", "the platform has deleted what %s had left", s.nameOf(id))
		}
	}
	for _, id := range ids {
		if rule := s.away[id]; rule != nil {
			rule.Lift()
			delete(s.away, id)
			s.say("fault", "the node of %s is back", s.nameOf(id))
		}
	}
	return err
}

func (s *Session) wipe(words []string, _ string) error {
	i, err := s.snapshot()
	if err != nil {
		return err
	}
	ids, err := i.members(words)
	if err != nil {
		return err
	}
	return s.try(func(c *trial.Check) {
		for _, id := range ids {
			err := c.Platform.Wipe(id)
			c.Require(err == nil, "the node could not be wiped: %v", err)
			s.mu.Lock()
			s.say("fault", "all that %s had on its node was deleted", s.nameOf(id))
			s.mu.Unlock()
		}
	})
}
