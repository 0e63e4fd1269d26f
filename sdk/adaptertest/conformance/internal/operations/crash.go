package operations

import (
	"fmt"
	"net/http"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inCrash = "PUT /v1/operations/{id}: the operation is durable before it is answered"

// Crash returns the clauses on an adapter that is killed.
func Crash() []trial.Clause {
	return []trial.Clause{
		{ID: "crash.resumes", Section: inCrash, Needs: []string{trial.Created}, Run: crashResumes,
			Rule: "after kill -9 in the middle the operation is known, continues by itself and ends once",
			Fix:  "write the operation to disk before you answer, and resume what has not ended when you start"},
		{ID: "crash.once", Section: inCrash, Needs: []string{"crash.resumes"}, Run: crashOnce,
			Rule: "after kill -9 in the middle nothing is done a second time",
			Fix: "build each step's idempotency key from operation, attempt of the run, member and step: then a " +
				"resumed step is the same node task"},
		{ID: "crash.remembers", Section: inCrash, Needs: []string{trial.Created}, Run: crashRemembers,
			Rule: "after kill -9 an operation that had ended is still known, and its repeat does nothing",
			Fix:  "keep ended operations on disk"},
		{ID: "crash.feed", Section: inFeed,
			Needs: []string{"crash.resumes", "feed.continues", "decommission.unborn"}, Run: crashFeed,
			Rule: "a reader of the feed with a cursor from before the crash receives the end",
			Fix:  "keep the epoch and continue above every version that was sent, or start a new epoch"},
		{ID: "crash.instance", Section: trial.InObserve,
			Needs: []string{trial.Created, "observe.valid"}, Run: crashInstance,
			Rule: "after kill -9 the instances are still known",
			Fix:  "keep instances with their members on disk"},
		{ID: "crash.usage", Section: trial.InUsage,
			Needs: []string{"crash.instance", "usage.stable"}, Run: crashUsage,
			Rule: "after kill -9 all usage is still there, and nothing is counted a second time under another id",
			Fix:  "write records to disk before you continue; derive ids from what they count, not from the process"},
	}
}

// crash kills the adapter, starts it again and waits until it answers.
func crash(c *trial.Check) {
	killable(c)
	if err := c.Options.Launcher.Kill(); err != nil {
		c.NotRun("the adapter could not be killed: %v", err)
	}
	c.HTTP.CloseIdleConnections()
	err := c.Launch()
	if err == nil {
		_, err = c.AwaitAnswer()
	}
	c.Remember(trial.Letter{Method: "kill -9", Target: "and start"}, trial.Reply{Status: http.StatusOK}, err)
	c.Require(err == nil, "after kill -9 the adapter did not answer again within %s: %v", c.Bounds.Start, err)
}

// killable ends the clause unless the suite started the adapter.
func killable(c *trial.Check) {
	if c.Options.Launcher == nil {
		c.NotRun("the suite did not start the adapter, so it cannot kill it")
	}
}

// killed kills the adapter in the middle of a create, lets it go on, and returns how it ended.
func killed(c *trial.Check) (*trial.Instance, adapter.Status) {
	killable(c)
	i, d, rule := c.Middle()
	crash(c)
	var status adapter.Status
	answer := c.Get(adapter.OperationPath(d.OperationID), &status)
	c.Require(answer.Status == http.StatusOK, "after kill -9 the operation's status returned %s", answer.Say())
	rule.Lift()
	return i, c.Await(d.OperationID)
}

func crashResumes(c *trial.Check) {
	_, status := killed(c)
	c.Require(status.State == adapter.StateSucceeded,
		"after kill -9 the operation ended %q: %s", status.State, trial.Explain(status))
}

func crashOnce(c *trial.Check) {
	i, _ := killed(c)
	c.Pause(c.Bounds.Settle)
	c.ActsOnce(i)
}

// crashRemembers repeats a dispatch after a crash: the adapter knows how the operation ended.
func crashRemembers(c *trial.Check) {
	killable(c)
	i, d := c.Create()
	crash(c)
	before := i.Begun()
	var status adapter.Status
	answer := c.Get(adapter.OperationPath(d.OperationID), &status)
	c.Require(answer.Status == http.StatusOK && status.State == adapter.StateSucceeded,
		"after kill -9 the status of an ended operation returned %s", answer.Say())
	again := c.Put(d)
	c.Require(again.Status == http.StatusOK, "after kill -9 the repeat of an ended operation returned %s", again.Say())
	c.StaysQuiet(i, before, "kill -9 and a repeat of an ended operation")
}

// crashFeed reads the feed across a crash with a cursor of before: the end of an operation that the
// crash interrupted must still be on it.
func crashFeed(c *trial.Check) {
	killable(c)
	// Some cheap operations first, so that a counter that begins at zero after the crash is
	// noticed.
	for range 10 {
		c.Carry(c.NewInstance(), adapter.InstanceDecommission, nil)
	}
	cursor := drainFeed(c, "")
	_, d, rule := c.Middle()
	seen := c.ReadPage(cursor, 0)
	if len(seen.Operations) > 0 {
		cursor = seen.Cursor
	}
	crash(c)
	rule.Lift()
	followFeed(c, cursor, map[string]bool{d.OperationID: true})
}

func crashInstance(c *trial.Check) {
	killable(c)
	i, _ := c.Create()
	crash(c)
	seen, answer := c.Observe(i)
	c.Require(answer.Status == http.StatusOK && seen.InstanceID == i.Wire.ID,
		"after kill -9 the instance was observed as %s", answer.Say())
}

// crashUsage requires that what was counted before a crash is there after it, and is not counted again under another
// id.
func crashUsage(c *trial.Check) {
	killable(c)
	i := c.Metered()
	before := c.Usage(i, "")
	crash(c)
	after := c.Usage(i, "")
	ids, content := make(map[string]bool), make(map[string]string)
	for _, record := range before.Records {
		ids[record.ID], content[fact(record)] = true, record.ID
	}
	for _, record := range after.Records {
		was, counted := content[fact(record)]
		c.Require(!counted || ids[record.ID], "after kill -9 usage record %s is counted again as %s", was, record.ID)
		delete(ids, record.ID)
	}
	c.Require(len(ids) == 0, "after kill -9 %d usage records are missing", len(ids))
}

// fact is what a record counts, whatever it is called.
func fact(r adapter.UsageRecord) string {
	return fmt.Sprint(r.Dimension, " ", r.MemberID, " ", r.Session, " ", r.Quantity, " ", r.From.UTC(), " ", r.To.UTC())
}
