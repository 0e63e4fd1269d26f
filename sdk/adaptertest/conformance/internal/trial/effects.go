package trial

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Profile is what a clean create does: the number of times that each effect was brought about.
type Profile map[effect]int

// effect is one thing that was done to one member. Probes and inspections only look and have no
// effect.
type effect struct {
	member string // component key and index, so that two instances compare
	kind   adapter.TaskKind
	object string // path, process name or digest of the command
}

// Total returns the number of effects.
func (p Profile) Total() int {
	n := 0
	for _, count := range p {
		n += count
	}
	return n
}

// EffectsOf returns the effects of one operation of the instance that were really brought about; of
// all its operations when the id is empty.
func (i *Instance) EffectsOf(operation string) Profile {
	names := map[string]string{}
	for _, member := range i.Members {
		names[member.ID] = fmt.Sprintf("%s-%d", member.ComponentKey, member.Index)
	}
	found := Profile{}
	for _, entry := range i.Suite.Platform.Ledger(i.Wire.ID) {
		if entry.Begun && standin.Acts(entry.Kind) && (operation == "" || operation == entry.Operation) {
			found[effect{names[entry.Member], entry.Kind, i.objectOf(entry)}]++
		}
	}
	return found
}

// objectOf returns what a task acts on. Commands are compared as text without the instance's ids.
func (i *Instance) objectOf(entry standin.Entry) string {
	var spec struct {
		Path, Name, Stdin string
		Command           []string
	}
	if err := json.Unmarshal(entry.Spec, &spec); err != nil {
		return "?"
	}
	switch entry.Kind {
	case adapter.TaskWriteFile:
		return spec.Path
	case adapter.TaskStartProcess, adapter.TaskStopProcess:
		return spec.Name
	case adapter.TaskTeardown:
		return ""
	}
	text := strings.Join(spec.Command, "\x00") + "\x00" + spec.Stdin
	text = strings.ReplaceAll(text, i.Wire.ID, "{instance}")
	for n, id := range i.All {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("{member %d}", n))
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// repeated returns the first effect that occurred more often than in a clean create; empty when no
// effect did. A command that even a clean create runs several times is the adapter's way of waiting
// for something, and does not count.
func (p Profile) repeated(found Profile) string {
	for one, count := range found {
		allowed := max(p[one], 1)
		if count > allowed && !(one.kind == adapter.TaskRun && p[one] > 1) {
			return fmt.Sprintf(
				"node task %s %q on member %s was carried out %d times; a clean create does it %d times", one.kind,
				one.object,
				one.member, count, allowed,
			)
		}
	}
	return ""
}

// ActsOnce fails when an effect of the instance's create was brought about twice.
func (c *Check) ActsOnce(i *Instance) {
	again := c.Baseline.repeated(i.EffectsOf(""))
	c.Require(again == "", "%s", again)
}

// BegunAfter returns the acting tasks of the instance that were begun and are not in before.
func (i *Instance) BegunAfter(before map[string]bool) []standin.Entry {
	var begun []standin.Entry
	for _, entry := range i.Suite.Platform.Ledger(i.Wire.ID) {
		if entry.Begun && standin.Acts(entry.Kind) && !before[entry.ID] {
			begun = append(begun, entry)
		}
	}
	return begun
}

// Begun returns the ids of the instance's tasks that have been begun so far.
func (i *Instance) Begun() map[string]bool {
	ids := map[string]bool{}
	for _, entry := range i.Suite.Platform.Ledger(i.Wire.ID) {
		if entry.Begun {
			ids[entry.ID] = true
		}
	}
	return ids
}

// StaysQuiet requires that nothing more is done to the instance for as long as things take to
// settle.
func (c *Check) StaysQuiet(i *Instance, before map[string]bool, after string) {
	c.Pause(c.Bounds.Settle)
	if begun := i.BegunAfter(before); len(begun) > 0 {
		c.Fail(
			"after %s the node task %s on member %s was still carried out (and %d more)", after, begun[0].Kind,
			begun[0].Member, len(begun)-1,
		)
	}
}

// StaysUntouched requires that a refused request began nothing: no operation, no node task.
func (c *Check) StaysUntouched(i *Instance, operation, after string) {
	var status adapter.Status
	answer := c.Get(adapter.OperationPath(operation), &status)
	c.Require(answer.Status == 404,
		"after %s the operation must be unknown (404), but its status returned %s", after, answer.Say())
	if entries := i.Suite.Platform.Ledger(i.Wire.ID); len(entries) > 0 {
		c.Fail("after %s the adapter requested the node task %s", after, entries[0].Kind)
	}
}

// Looks returns the specs of the commands that an observation of the instance runs: they change nothing.
func (c *Check) Looks(i *Instance) map[string]bool {
	before := len(c.Platform.Ledger(i.Wire.ID))
	c.Observe(i)
	specs := map[string]bool{}
	for _, entry := range c.Platform.Ledger(i.Wire.ID)[before:] {
		if entry.Kind == adapter.TaskRun {
			specs[string(entry.Spec)] = true
		}
	}
	return specs
}
