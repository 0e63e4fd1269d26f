package mutant

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// step runs one node task under a key of operation, generation, member, step and nonce.
func (r *run) step(member, step string, kind adapter.TaskKind, spec any) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	for _, one := range r.d.Members {
		away := one.ID == member && one.Node.Reachable != nil && !*one.Node.Reachable
		if away && r.d.Force && !(r.t.broken("force.at_once") && r.d.Attempt == 1) {
			return nil
		}
	}
	key := fmt.Sprintf("%s.%d.%s.%s.%s", r.d.OperationID, r.generation, member, step, r.nonce)
	err := node(r.ctx, r.access, member, key, kind, spec, r.leave)
	if err == nil {
		r.t.write(func() { r.held.finished++ })
	}
	return err
}

func (r *run) file(member, path, content string) error {
	return r.step(member, path, adapter.TaskWriteFile, adapter.WriteFile{Path: path, Content: content, MakeDirs: true})
}

func (r *run) teardown(member string) error {
	return r.step(member, "teardown", adapter.TaskTeardown, adapter.Teardown{})
}

// say reports a member.
func (r *run) say(member string, status adapter.MemberStatus) {
	r.set(func(*adapter.Status) { r.member(member, status) })
}

// bring brings a member up.
func (r *run) bring(member string) error {
	err := r.file(member, "/srv/tiny/config", string(r.d.Instance.Config))
	if r.t.broken("task.fails") {
		broken := adapter.RunCommand{Command: []string{"sh", "-c", "echo no such disk >&2; exit 3"}}
		err = r.step(member, "broken", adapter.TaskRun, broken)
	}
	if err == nil {
		err = r.file(member, "/srv/tiny/ready", r.d.Instance.Version)
	}
	if err != nil {
		return err
	}
	said := adapter.MemberActive
	if (r.t.broken("dispatch.completes") && r.d.Kind == adapter.InstanceCreate) ||
		(r.t.broken("add.completes") && r.d.Kind == adapter.MembersAdd) {
		said = adapter.MemberJoining
	}
	r.say(member, said)
	return nil
}

// out takes a member out for good.
func (r *run) out(member string) error {
	if err := r.teardown(member); err != nil {
		return err
	}
	r.say(member, adapter.MemberRemoved)
	return nil
}

func (r *run) all() (ids []string) {
	for _, member := range r.d.Members {
		ids = append(ids, member.ID)
	}
	return ids
}

// work carries out the operation's kind.
func (r *run) work() error {
	switch r.d.Kind {
	case adapter.InstanceCreate:
		return each(r.all(), r.bring)
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return r.move()
	case adapter.InstanceDecommission:
		return r.decommission()
	case adapter.MembersAdd:
		if r.t.broken("add.targets_only") {
			_ = r.step(
				r.d.Members[0].ID,
				"again",
				adapter.TaskStartProcess,
				adapter.StartProcess{Name: "again", Command: []string{"sleep", "60"},
					Restart: adapter.Restart{Policy: "never"}},
			)
		}
		return each(r.d.Targets, r.bring)
	case adapter.MemberRecover:
		if r.t.broken("recover.completes") {
			r.say(r.d.Targets[0], adapter.MemberActive)
			return nil
		}
		if r.leads(r.d.Targets[0], "recover.each") {
			return errLeads
		}
		return each(r.d.Targets, r.bring)
	case adapter.MemberDrain:
		return each(r.d.Targets, r.drain)
	case adapter.MemberRemove:
		if r.t.broken("remove.several") { // the first alone is torn down
			for _, id := range r.d.Targets[1:] {
				r.say(id, adapter.MemberRemoved)
			}
			return r.remove(r.d.Targets[0])
		}
		return each(r.d.Targets, r.remove)
	case adapter.MemberReplace:
		return r.replace()
	}
	return r.mark()
}

func each(ids []string, work func(string) error) error {
	for _, id := range ids {
		if err := work(id); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) move() error {
	for _, id := range r.all() {
		if err := r.moveOne(id); err != nil {
			return err
		}
		if r.t.broken("upgrade.completes") && r.d.Kind == adapter.InstanceUpgrade {
			_ = r.teardown(id)
		}
		said := adapter.MemberActive
		if r.t.broken("rollback.completes") && r.d.Kind == adapter.InstanceRollback {
			said = adapter.MemberFailed
		}
		r.say(id, said)
	}
	return nil
}

func (r *run) moveOne(id string) error {
	up := r.d.Kind == adapter.InstanceUpgrade
	switch {
	case up && r.t.broken("upgrade.changes"), !up && r.t.broken("rollback.changes"):
		return nil
	case up && r.t.broken("upgrade.looks"):
		return r.step(id, "look", adapter.TaskRun, looking)
	}
	return r.file(id, "/srv/tiny/ready", r.d.Instance.Version)
}

func (r *run) decommission() error {
	ids := r.all()
	if r.t.broken("decommission.clean") && len(ids) > 0 {
		r.say(ids[len(ids)-1], adapter.MemberRemoved)
		ids = ids[:len(ids)-1]
	}
	if r.t.broken("decommission.partial") && r.halfBorn() {
		for _, id := range ids {
			r.say(id, adapter.MemberRemoved)
		}
		return nil
	}
	return each(ids, r.out)
}

// halfBorn says whether a create of the instance has failed.
func (r *run) halfBorn() (failed bool) {
	r.t.disk.mu.Lock()
	defer r.t.disk.mu.Unlock()
	for _, held := range r.t.disk.operations {
		failed = failed ||
			(held.dispatch.Instance.ID == r.d.Instance.ID && held.dispatch.Kind == adapter.InstanceCreate &&
				held.status.State == adapter.StateFailed)
	}
	return failed
}

func (r *run) remove(id string) error {
	if r.leads(id, "remove.each") {
		return errLeads
	}
	if r.leads(id, "remove.headless") {
		r.t.write(func() { r.t.disk.instances[r.d.Instance.ID].headless = true })
	}
	if r.t.broken("remove.completes") {
		r.say(id, adapter.MemberRemoved)
		return nil
	}
	if r.t.broken("remove.others") {
		other := slices.IndexFunc(r.d.Members, func(m adapter.Member) bool { return m.ID != id })
		stop := adapter.StopProcess{Name: "unit"}
		if err := r.step(r.d.Members[other].ID, "stop", adapter.TaskStopProcess, stop); err != nil {
			return err
		}
	}
	return r.out(id)
}

func (r *run) replace() error {
	var change adapter.ReplaceChange
	if err := json.Unmarshal(r.d.Change, &change); err != nil {
		return err
	}
	if r.leads(r.d.Targets[0], "replace.each") {
		return errLeads
	}
	if err := r.bring(change.ReplacementID); err != nil {
		return err
	}
	if r.t.broken("replace.completes") {
		r.say(r.d.Targets[0], adapter.MemberRemoved)
		return nil
	}
	return r.out(r.d.Targets[0])
}

// mark cordons, uncordons and labels: a file says which.
func (r *run) mark() error {
	id := r.d.Targets[0]
	if r.d.Kind == adapter.MemberLabel && r.leads(id, "label.each") ||
		r.d.Kind == adapter.MemberCordon && r.leads(id, "cordon.each") {
		return errLeads
	}
	var change adapter.LabelChange
	if err := json.Unmarshal(r.d.Change, &change); err != nil {
		return err
	}
	for _, member := range r.d.Members {
		if member.ID == id && member.Cordoned && r.d.Kind == adapter.MemberCordon && r.t.broken("cordon.completes") {
			return errors.New("the member is cordoned already")
		}
	}
	if r.d.Kind == adapter.MemberLabel && len(change.Labels) == 0 && r.t.broken("label.completes") {
		return errors.New("no labels")
	}
	return r.file(id, "/srv/tiny/"+string(r.d.Kind), string(r.d.Change))
}

// bury notes a tombstone. The disk is locked.
func (t *tiny) bury(id string, attempt int) reply {
	if !t.broken("cancel.tombstone") {
		t.disk.tombstones[id] = max(attempt, t.disk.tombstones[id])
	}
	return reply{http.StatusOK, adapter.CancelResult{Outcome: adapter.CancelUnknown, Tombstone: true,
		Message: "so it is"}}
}

func (t *tiny) cancelRoute(req *http.Request, body []byte) reply {
	var asked adapter.CancelRequest
	if json.Unmarshal(body, &asked) != nil || asked.Attempt < 1 {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "attempt", "attempt is missing")
	}
	t.disk.mu.Lock()
	held, ok := t.disk.operations[req.PathValue("id")]
	answer := func(outcome adapter.CancelOutcome) reply {
		return reply{http.StatusOK, adapter.CancelResult{Outcome: outcome, Message: "so it is"}}
	}
	if !ok {
		defer t.disk.mu.Unlock()
		if t.broken("cancel.unknown") {
			return answer(adapter.CancelDone)
		}
		return t.bury(req.PathValue("id"), asked.Attempt)
	}
	ended, read, last := held.status.State, held.read, held.finished >= 3
	stale := asked.Attempt < held.dispatch.Attempt && !t.broken("cancel.stale")
	r := held.run
	t.disk.mu.Unlock()
	switch {
	case stale:
		return refuse(http.StatusConflict, "STALE_FENCE", "attempt", "a higher attempt was seen")
	case ended == adapter.StateCanceled && t.broken("cancel.repeat"):
		return answer(adapter.CancelUnknown)
	case ended == adapter.StateCanceled,
		ended.Terminal() && read && t.broken("cancel.ended"),
		!ended.Terminal() && t.broken("cancel.running"):
		return answer(adapter.CancelDone)
	case ended.Terminal():
		return answer(adapter.CancelTooLate)
	}
	if !last || !t.broken("cancel.race") {
		r.cancel(errCanceled)
	}
	select {
	case <-r.done:
	case <-time.After(5 * time.Second):
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	switch {
	case held.status.State == adapter.StateCanceled, last && t.broken("cancel.race"):
		return answer(adapter.CancelDone)
	case held.status.State.Terminal():
		return answer(adapter.CancelTooLate)
	}
	return answer(adapter.CancelUnknown)
}

// nonceOr returns a key's end: none, or a random one for a mutant whose keys never repeat.
func nonceOr(broken bool) string {
	if broken {
		return rand.Text()
	}
	return ""
}
