package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// judge returns why the platform would not believe an end; nil when it would. An adapter claims success and does not
// prove it: what was brought up must pass the manifest's readiness probes, and of what was taken away the nodes must
// have nothing left.
func (s *Session) judge(ctx context.Context, held *operation) error {
	status, d := held.last, held.dispatch
	switch status.State {
	case adapter.StateCanceled:
		return nil
	case adapter.StateFailed:
		if e := status.Error; e == nil || e.Code == "" || !e.Owner.Valid() {
			return errors.New("it failed without an error that has a code and an owner")
		}
		return errors.New("it failed: " + trial.Explain(status))
	}
	up, gone, drained := expected(d)
	var wrong []error
	for _, id := range up {
		wrong = append(wrong, s.stands(held, id, adapter.MemberActive), s.ready(ctx, held, id))
	}
	for _, id := range gone {
		wrong = append(wrong, s.stands(held, id, adapter.MemberRemoved), s.empty(id))
	}
	for _, id := range drained {
		wrong = append(wrong, s.stands(held, id, adapter.MemberDrained))
	}
	if len(drained) > 0 && len(status.Evidence) == 0 {
		wrong = append(wrong, errors.New("a drain needs evidence"))
	}
	return errors.Join(wrong...)
}

// expected returns the members that an operation brings up, takes away and drains.
func expected(d adapter.Dispatch) (up, gone, drained []string) {
	for _, member := range d.Members {
		if !slices.Contains([]string{string(adapter.MemberFailed), string(adapter.MemberDrained)}, member.Status) {
			up = append(up, member.ID)
		}
		gone = append(gone, member.ID)
	}
	switch d.Kind {
	case adapter.InstanceCreate, adapter.InstanceUpgrade, adapter.InstanceRollback:
		return up, nil, nil
	case adapter.InstanceDecommission:
		return nil, gone, nil
	case adapter.MembersAdd, adapter.MemberRecover:
		return d.Targets, nil, nil
	case adapter.MemberRemove:
		return nil, d.Targets, nil
	case adapter.MemberDrain:
		return nil, nil, d.Targets
	case adapter.MemberReplace:
		var change adapter.ReplaceChange
		_ = json.Unmarshal(d.Change, &change) // it is the session's own
		return []string{change.ReplacementID}, d.Targets, nil
	}
	return nil, nil, nil
}

// stands requires that the status reports a member in this state.
func (s *Session) stands(held *operation, id string, wanted adapter.MemberStatus) error {
	s.mu.Lock()
	name := s.nameOf(id)
	s.mu.Unlock()
	for _, member := range held.last.Members {
		if member.ID == id && member.Status == wanted {
			return nil
		}
		if member.ID == id {
			return fmt.Errorf("%s is reported as %s, not as %s", name, member.Status, wanted)
		}
	}
	return fmt.Errorf("%s is not reported as %s", name, wanted)
}

// empty requires that nothing is left of a member, unless its node is away: then the platform cleans it later.
func (s *Session) empty(id string) error {
	s.mu.Lock()
	name, away := s.nameOf(id), s.away[id] != nil
	s.mu.Unlock()
	if away {
		s.say("verdict", "the node of %s is away: the platform cleans it when it is back", name)
		return nil
	}
	left, err := s.suite.Platform.Residue(id)
	if err == nil && !left.Empty() {
		err = fmt.Errorf("%d processes and %d files of %s are left, such as %v", len(left.Processes), left.Files, name,
			left.Names)
	}
	return err
}

// ready runs the manifest's readiness probes in a member.
func (s *Session) ready(ctx context.Context, held *operation, id string) error {
	var manifest struct {
		Readiness []struct {
			ComponentKey, Name string
			Probe              map[string]any
		}
	}
	if s.suite.Options.Manifest == nil || json.Unmarshal(s.suite.Options.Manifest, &manifest) != nil {
		return nil
	}
	at := slices.IndexFunc(held.dispatch.Members, func(m adapter.Member) bool { return m.ID == id })
	if at < 0 {
		return nil
	}
	member := held.dispatch.Members[at]
	for _, one := range manifest.Readiness {
		if one.ComponentKey != member.ComponentKey {
			continue
		}
		for _, kind := range []string{"tcp", "http"} { // a probe without a host is of the node itself
			if to, ok := one.Probe[kind].(map[string]any); ok && to["host"] == nil {
				to["host"] = member.Node.Address
			}
		}
		raw, err := json.Marshal(one.Probe)
		if err != nil {
			return err
		}
		outcome := s.suite.Platform.Carry(ctx, sandbox.Task{
			InstanceID: held.dispatch.Instance.ID, MemberID: id, Kind: adapter.TaskProbe, Spec: raw,
			Timeout: 2 * time.Minute,
		})
		if outcome.State != adapter.TaskSucceeded {
			return fmt.Errorf("%s does not pass the readiness probe %s: %s", memberName(member), one.Name,
				outcome.Message)
		}
		s.say("verdict", "%s passes the readiness probe %s", memberName(member), one.Name)
	}
	return nil
}
