package instances

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// workName is the name of the process that is a command's work.
const workName = "conformance-work"

// Work returns the clauses on a drain's reason: what runs in the member.
func Work() []trial.Clause {
	needs := []string{"drain.completes"}
	return []trial.Clause{
		{ID: "drain.asks", Section: inDrain, Needs: needs, Run: drainAsks,
			Rule: "a drain reports a member as drained only after a node task has checked it",
			Fix:  "check what runs in the member, by a node task, before you report it drained"},
		{ID: "drain.waits", Section: inDrain, Needs: []string{"drain.completes", "drain.asks"}, Run: drainWaits,
			Rule: "a drain waits for the work that runs in the member, and ends when the work has ended",
			Fix:  "wait until nothing runs in the member any more; say in waitsFor what you wait for"},
	}
}

// drainAsks holds back every node task of the drain: a drain that ends without one has not read what runs there.
func drainAsks(c *trial.Check) {
	c.Supports(adapter.MemberDrain)
	i, member := spare(c)
	d := c.Dispatch(i, adapter.MemberDrain, member.ID)
	rule := c.Rule(&standin.Rule{Instance: i.Wire.ID, Operation: d.OperationID, Fate: standin.Hold, Looks: true})
	c.Accept(d)
	for rule.Count() == 0 {
		status := c.Status(d.OperationID)
		c.Require(!status.State.Terminal() || rule.Count() > 0,
			"the drain ended %q with the evidence %s, but requested no node task",
			status.State, c.Encode(status.Evidence))
		c.Pause(10 * time.Millisecond)
	}
	rule.Lift()
	c.Succeed(d.OperationID)
}

// drainWaits begins work on a member and drains it: the drain does not end before the work does.
func drainWaits(c *trial.Check) {
	c.Supports(adapter.MemberDrain)
	work := c.Options.Work
	if work == nil {
		c.Skip("the suite does not know what work is in this app: name an action or a command that starts some")
	}
	if work.Action != "" && !slices.Contains(c.Description.ContractVersions, "1.1") {
		c.Skip("work of an action is ended by force, which needs contract 1.1")
	}
	i, member := spare(c)
	begin(c, i, member)
	d := c.Dispatch(i, adapter.MemberDrain, member.ID)
	c.Accept(d)
	waits := func() []adapter.Work {
		status := c.Status(d.OperationID)
		c.Require(!status.State.Terminal(), "work still ran in the member, but the drain ended %q: %s", status.State,
			trial.Explain(status))
		return status.WaitsFor
	}
	for end := time.Now().Add(c.Bounds.Grace); time.Now().Before(end) && len(waits()) == 0; {
		c.Pause(20 * time.Millisecond)
	}
	c.Pause(c.Bounds.Settle)
	waits()
	if work.Command != "" {
		carry(c, i, member, adapter.TaskStopProcess, adapter.StopProcess{Name: workName})
	} else {
		d.Attempt, d.Force = 2, true
		c.Accept(d)
	}
	reported(c, c.Succeed(d.OperationID), member.ID, adapter.MemberDrained)
}

// begin begins work on the member.
func begin(c *trial.Check, i *trial.Instance, member adapter.Member) {
	work := c.Options.Work
	if work.Command != "" {
		carry(c, i, member, adapter.TaskStartProcess, adapter.StartProcess{
			Name: workName, Command: []string{"sh", "-c", work.Command}, Restart: adapter.Restart{Policy: "never"},
		})
		c.Pause(c.Bounds.Settle) // the app has to notice it
		return
	}
	input := work.Input
	for word, value := range map[string]string{
		"{member}": member.ID, "{component}": member.ComponentKey, "{index}": strconv.Itoa(member.Index),
	} {
		input = bytes.ReplaceAll(input, []byte(word), []byte(value))
	}
	answer := c.Act(i, work.Action, trial.NewID("key"), input)
	c.Require(answer.Status == http.StatusOK, "the action %s, which starts work, returned %s", work.Action,
		answer.Say())
}

// carry has the suite itself do something in a member.
func carry(c *trial.Check, i *trial.Instance, member adapter.Member, kind adapter.TaskKind, spec any) {
	raw, err := json.Marshal(spec)
	if err != nil {
		c.NotRun("the suite could not create its own node task: %v", err)
	}
	outcome := c.Platform.Carry(c.Ctx, sandbox.Task{
		InstanceID: i.Wire.ID, MemberID: member.ID, Kind: kind, Spec: raw, Timeout: c.Bounds.Operation,
	})
	if outcome.State != adapter.TaskSucceeded {
		c.NotRun("the suite's own %s ended %s: %s", kind, outcome.State, outcome.Message)
	}
}
