package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const (
	// askTime bounds one poll of an operation.
	askTime = 2 * time.Second
	// maxShown is how much of a command, an output or an evidence is shown, in bytes.
	maxShown = 160
)

// follow reports what is new until ctx ends.
func (s *Session) follow(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.tasks()
		s.progress(ctx)
		s.shape()
	}
}

// tasks reports the node tasks that are new or whose state has changed.
func (s *Session) tasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.suite.Platform.Since(s.seen)
	for _, entry := range list {
		if was, known := s.open[entry.ID]; known && was.State == entry.State {
			continue
		}
		s.open[entry.ID] = entry
		s.say("task", "%s", s.taskLine(entry))
	}
	for _, entry := range list {
		if !entry.State.Ended() {
			break
		}
		delete(s.open, entry.ID)
		s.seen++
	}
}

// taskLine describes a node task in one line, with the cause where it failed. The session is locked.
func (s *Session) taskLine(entry standin.Entry) string {
	line := fmt.Sprintf("%s %s %s %s", s.nameOf(entry.Member), entry.Kind, objectOf(entry),
		strings.ToLower(string(entry.State)))
	if !entry.State.Ended() || entry.State == adapter.TaskSucceeded {
		return line
	}
	line += ": " + entry.Message
	if entry.ExitCode != nil {
		line += fmt.Sprintf(", exit code %d", *entry.ExitCode)
	}
	if said := strings.TrimSpace(entry.Stderr); said != "" {
		line += ": " + said[max(0, len(said)-maxShown):]
	}
	return strings.ReplaceAll(line, "\n", " ")
}

// objectOf returns what a task acts on.
func objectOf(entry standin.Entry) string {
	var spec struct {
		Path, Name, Digest string
		Command            []string
	}
	_ = json.Unmarshal(entry.Spec, &spec) // a spec of another form has no object
	command := strings.Join(spec.Command, " ")
	return short(strings.Join(strings.Fields(spec.Path+" "+spec.Name+" "+spec.Digest+" "+command), " "))
}

// short returns a text with its middle left out where it is long: a command's last words say what it is about.
func short(line string) string {
	const ahead, behind = 24, 60
	if len(line) <= ahead+behind {
		return line
	}
	return strings.ToValidUTF8(line[:ahead]+"…"+line[len(line)-behind:], "")
}

// progress reports the state of the operation, and finishes it when it has ended.
func (s *Session) progress(ctx context.Context) {
	s.mu.Lock()
	held := s.operation
	s.mu.Unlock()
	if held == nil {
		return
	}
	select {
	case <-held.ended:
		return
	default:
	}
	s.wire.Lock()
	bounded, cancel := context.WithTimeout(ctx, askTime)
	status, known := s.suite.Known(bounded, held.dispatch.OperationID)
	cancel()
	s.wire.Unlock()
	if !known || status.Attempt < held.dispatch.Attempt {
		return
	}
	s.changes(held, status)
	if status.State.Terminal() {
		s.finish(ctx, held)
	}
}

// changes reports what is new in a status.
func (s *Session) changes(held *operation, status adapter.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := held.last
	if !held.changed || was.State != status.State || was.Phase != status.Phase || was.Message != status.Message {
		line := fmt.Sprintf("%s %s %d%% %s %s", held.dispatch.Kind, status.State, status.Percent, status.Phase,
			status.Message)
		s.say("operation", "%s", strings.TrimSpace(line))
	}
	for _, work := range status.WaitsFor {
		if !slices.ContainsFunc(was.WaitsFor, func(w adapter.Work) bool { return w.ID == work.ID }) {
			s.say("operation", "%s waits for %s %s on %s: %s", held.dispatch.Kind, work.Kind, work.ID,
				s.nameOf(work.MemberID), work.Message)
		}
	}
	for _, member := range status.Members {
		same := func(m adapter.MemberUpdate) bool {
			return m.ID == member.ID && m.Status == member.Status && m.Health == member.Health
		}
		if !held.changed || !slices.ContainsFunc(was.Members, same) {
			s.say("member", "%s %s %s", s.nameOf(member.ID), member.Status, member.Health)
		}
	}
	held.last, held.changed = status, true
}

// shape reports the first answer that broke the contract's schema.
func (s *Session) shape() {
	wrong := s.suite.Seen.Misfit()
	s.mu.Lock()
	defer s.mu.Unlock()
	if wrong != s.misfit {
		s.misfit = wrong
		s.say("failure", "%s", wrong)
	}
}

// finish judges how the operation ended, records what the platform then knows, and wakes the callers that wait.
func (s *Session) finish(ctx context.Context, held *operation) {
	s.tasks()
	status := held.last
	if len(status.Evidence) > 0 {
		raw, _ := json.Marshal(status.Evidence) // it came as JSON
		s.say("evidence", "%s", text.Clip(string(raw), 10*maxShown))
	}
	if status.Error != nil {
		s.say("operation", "%s, owned by the %s: %s", status.Error.Code, status.Error.Owner, status.Error.Message)
	}
	held.verdict = s.judge(ctx, held)
	switch {
	case held.verdict != nil:
		s.say("verdict", "the platform would not accept it: %v", held.verdict)
	case status.State == adapter.StateCanceled:
		s.say("verdict", "it was canceled")
	default:
		s.say("verdict", "the platform would accept it%s", s.unproved(held))
	}
	s.settle(held)
	close(held.ended)
}

// unproved says what the verdict does not rest on.
func (s *Session) unproved(held *operation) string {
	if s.suite.Options.Manifest == nil && !held.dispatch.Kind.TakesAway() {
		return "; no readiness probe was run, since no manifest is named"
	}
	return ""
}

// settle writes down what an operation has left behind.
func (s *Session) settle(held *operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, d, done := held.of, held.dispatch, held.last.State == adapter.StateSucceeded
	for _, update := range held.last.Members {
		if update.Status == adapter.MemberRemoved {
			i.Drop(update.ID)
		}
		i.Set(update.ID, func(m *adapter.Member) { m.Status = string(update.Status) })
	}
	switch d.Kind {
	case adapter.MembersAdd:
		for _, id := range d.Targets {
			if !done {
				i.Drop(id)
			}
		}
	case adapter.MemberReplace:
		var change adapter.ReplaceChange
		if json.Unmarshal(d.Change, &change) == nil && !done {
			i.Drop(change.ReplacementID)
		}
	case adapter.MemberCordon, adapter.MemberUncordon:
		for _, id := range d.Targets {
			i.Set(id, func(m *adapter.Member) { m.Cordoned = done == (d.Kind == adapter.MemberCordon) })
		}
	case adapter.MemberLabel:
		var change adapter.LabelChange
		if json.Unmarshal(d.Change, &change) == nil && done {
			i.Set(d.Targets[0], func(m *adapter.Member) { m.Labels = change.Labels })
		}
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		var change adapter.VersionChange
		if json.Unmarshal(d.Change, &change) == nil && !done {
			i.Wire.Version, i.Wire.Config = change.From.Version, change.From.Config
		}
	}
}
