package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// verb is one command that a line can give.
type verb struct {
	name, arguments, help string
	do                    func(s *Session, words []string, rest string) error
}

// verbs returns all of them, in the order in which help shows them.
func verbs() []verb {
	return slices.Concat(begins(), asks(), faults())
}

// asks are the verbs that begin nothing.
func asks() []verb {
	return []verb{
		{"wait", "", "wait until the operation has ended", func(s *Session, _ []string, _ string) error {
			_, err := s.wait()
			return err
		}},
		{"expect", "STATE|accepted|refused|HEALTH", "wait for the end, and stop the scenario if it differs",
			(*Session).expect},
		{"show", "", "show the instance, its members and the operation", (*Session).show},
		{"observe", "", "read the health of the instance from the adapter", (*Session).observe},
		{"action", "NAME [JSON]", "call an action; without JSON, an input is generated", (*Session).action},
		{"plan", "KIND [MEMBER…]", "request a plan of an operation, without starting it", (*Session).plan},
		{"usage", "", "read the instance's usage", (*Session).usage},
		{"help", "", "show this list", func(s *Session, _ []string, _ string) error {
			s.say("answer", "verbs:\n%s", strings.TrimRight(Help(), "\n"))
			return nil
		}},
		{"quit", "", "end adapter and members, and delete what they wrote", func(*Session, []string, string) error {
			return ErrQuit
		}},
	}
}

// expect requires how the operation ended, how the platform judges it, or how the instance is.
func (s *Session) expect(words []string, _ string) error {
	if len(words) != 1 {
		return badLine("expect takes one of: a state, accepted, refused, a health")
	}
	wanted := words[0]
	if adapter.Health(wanted).Valid() {
		seen, err := s.look()
		if err == nil && seen.Health != adapter.Health(wanted) {
			err = unexpected("the instance is %s, not %s", seen.Health, wanted)
		}
		return err
	}
	if state := adapter.State(wanted); wanted != "accepted" && wanted != "refused" &&
		(!state.Valid() || !state.Terminal()) {
		return badLine("%q is not succeeded, failed, canceled, accepted, refused or a health", wanted)
	}
	held, err := s.wait()
	switch {
	case err != nil:
		return err
	case wanted == "accepted" && held.verdict != nil:
		return unexpected("the platform would not accept %s: %w", held.dispatch.Kind, held.verdict)
	case wanted == "refused" && held.verdict == nil:
		return unexpected("the platform would accept %s", held.dispatch.Kind)
	case wanted != "accepted" && wanted != "refused" && string(held.last.State) != wanted:
		return unexpected("%s ended %s, not %s: %s", held.dispatch.Kind, held.last.State, wanted,
			trial.Explain(held.last))
	}
	return nil
}

func (s *Session) show([]string, string) error {
	i, err := s.here()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say("answer", "%s, version %s, config %s", i.Wire.Name, i.Wire.Version, i.Wire.Config)
	for _, member := range i.Members {
		away := ""
		if s.away[member.ID] != nil {
			away = ", away"
		}
		s.say("answer", "%s %s on %s (%s)%s %s", memberName(member), member.Status, member.Node.Name,
			member.Node.Address, away, member.ID)
	}
	if held := s.operation; held != nil {
		s.say("answer", "%s %s %s", held.dispatch.OperationID, held.dispatch.Kind, held.last.State)
	}
	return nil
}

// look observes the instance.
func (s *Session) look() (seen adapter.Observation, err error) {
	i, err := s.snapshot()
	if err != nil {
		return seen, err
	}
	err = s.try(func(c *trial.Check) {
		var answer trial.Reply
		seen, answer = c.Observe(i.Instance)
		c.Require(answer.Status == http.StatusOK, "the observation returned %s", answer.Say())
		c.Shape(answer, "Observation")
	})
	return seen, err
}

func (s *Session) observe([]string, string) error {
	seen, err := s.look()
	if err != nil {
		return err
	}
	s.say("answer", "%s: %s", seen.Health, seen.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, member := range seen.Members {
		s.say("answer", "%s %s %s", s.nameOf(member.ID), member.Health, member.Message)
	}
	return nil
}

func (s *Session) action(words []string, rest string) error {
	i, err := s.snapshot()
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return badLine("name an action")
	}
	at := slices.IndexFunc(s.suite.App.Actions, func(a adapter.Action) bool { return a.Name == words[0] })
	if at < 0 {
		return badLine("the app has no action %q", words[0])
	}
	input := json.RawMessage(strings.TrimSpace(strings.TrimPrefix(rest, words[0])))
	if len(input) > 0 && !json.Valid(input) {
		return badLine("the input of %s is not JSON", words[0])
	}
	return s.try(func(c *trial.Check) {
		if made, ok := c.Input(s.suite.App.Actions[at]); len(input) == 0 && ok {
			input = made
		}
		answer := c.Act(i.Instance, words[0], trial.NewID("key"), input)
		s.say("answer", "%s %s", words[0], answer.Say())
	})
}

func (s *Session) plan(words []string, _ string) error {
	i, err := s.snapshot()
	if err != nil {
		return err
	}
	if len(words) == 0 || !adapter.Kind(words[0]).Valid() {
		return badLine("name a kind of operation, such as member.drain")
	}
	var targets []string
	if len(words) > 1 {
		if targets, err = i.members(words[1:]); err != nil {
			return err
		}
	}
	return s.try(func(c *trial.Check) {
		answer := c.Call(trial.Letter{
			Method: http.MethodPost, Target: adapter.PlansPath, Patience: c.Bounds.Operation,
			Body: c.Encode(adapter.PlanRequest{
				Kind: adapter.Kind(words[0]), Instance: i.Wire, Members: i.Members, Targets: targets,
				Change:        []byte(`{}`),
				CorrelationID: "dev", Platform: c.Grant(i.Instance, trial.NewID("call")).Access(),
			}),
		})
		s.say("answer", "plan of %s: %s", words[0], answer.Say())
	})
}

func (s *Session) usage([]string, string) error {
	i, err := s.snapshot()
	if err != nil {
		return err
	}
	return s.try(func(c *trial.Check) {
		page := c.Usage(i.Instance, "")
		for _, record := range page.Records {
			s.say("answer", "%s %s from %s to %s", record.Quantity, record.Dimension,
				record.From.UTC().Format("15:04:05"), record.To.UTC().Format("15:04:05"))
		}
		s.say("answer", "%d records", len(page.Records))
	})
}

// Scenario carries out lines one after the other, ends at the first that fails, and otherwise when the last operation
// has ended. The error names the line.
func (s *Session) Scenario(lines []string) error {
	for n, line := range lines {
		if err := s.Do(line); errors.Is(err, ErrQuit) {
			return nil
		} else if err != nil {
			return lineError(n+1, line, err)
		}
	}
	return s.Settle()
}

func unexpected(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnexpected, fmt.Errorf(format, args...))
}

func lineError(n int, line string, err error) error {
	return fmt.Errorf("line %d, %s: %w", n, line, err)
}
