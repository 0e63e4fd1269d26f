package conformance

import (
	"net/http"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const inCrash = "PUT /v1/operations/{id}: the operation is durable before it is answered"

func crashClauses() []Clause {
	return []Clause{
		{ID: "crash.resumes", Section: inCrash, Rule: "after kill -9 in the middle the operation is known, goes on by itself and comes to its end once", Needs: []string{created},
			Fix: "write the operation to disk before you answer, and resume what has not ended when you start", run: crashResumes},
		{ID: "crash.once", Section: inCrash, Rule: "after kill -9 in the middle nothing is done a second time", Needs: []string{"crash.resumes"},
			Fix: "give each step an idempotency key made of operation, member and step, so that a resumed step is the same node task", run: crashOnce},
		{ID: "crash.remembers", Section: inCrash, Rule: "after kill -9 an operation that had ended is still known, and its repeat does nothing", Needs: []string{created},
			Fix: "keep ended operations on disk", run: crashRemembers},
		{ID: "crash.feed", Section: inFeed, Rule: "who follows the feed from a cursor of before the crash sees the end", Needs: []string{"crash.resumes", "feed.continues", "decommission.unborn"},
			Fix: "keep the epoch and go on above every version given out, or take a new epoch", run: crashFeed},
		{ID: "crash.instance", Section: inObserve, Rule: "after kill -9 the instances are still known", Needs: []string{created, "observe.valid"},
			Fix: "keep instances with their members on disk", run: crashInstance},
	}
}

func ruleFailing(i *instance, d adapter.Dispatch, skip int) *standin.Rule {
	return &standin.Rule{Instance: i.as.ID, Operation: d.OperationID, Fate: standin.Fail, Skip: skip}
}

// crash kills the adapter and starts it again, and waits until it answers.
func (c *check) crash() {
	c.killable()
	if err := c.options.Launcher.Kill(); err != nil {
		c.notRun("the adapter could not be killed: %v", err)
	}
	c.http.CloseIdleConnections()
	err := c.launch()
	if err == nil {
		_, err = c.awaitAnswer()
	}
	c.remember(letter{method: "kill -9", target: "and start"}, reply{status: http.StatusOK}, err)
	c.unless(err == nil, "after kill -9 the adapter did not come back within %s: %v", c.bounds.Start, err)
}

// killable ends the clause unless the suite started the adapter.
func (c *check) killable() {
	if c.options.Launcher == nil {
		c.notRun("the suite did not start the adapter and so cannot kill it")
	}
}

// killed kills the adapter in the middle of a create, lets it go on, and returns how it ended.
func (c *check) killed() (*instance, adapter.Status) {
	c.killable()
	i, d, rule := c.middle()
	c.crash()
	var status adapter.Status
	answer := c.get(adapter.OperationPath(d.OperationID), &status)
	c.unless(answer.status == http.StatusOK, "after kill -9 the operation's status was answered %s", answer.say())
	rule.Lift()
	return i, c.await(d.OperationID)
}

func crashResumes(c *check) {
	_, status := c.killed()
	c.unless(status.State == adapter.StateSucceeded, "after kill -9 the operation ended %q: %s", status.State, explain(status))
}

func crashOnce(c *check) {
	i, _ := c.killed()
	c.pause(c.bounds.Settle)
	c.once(i)
}

func crashRemembers(c *check) {
	c.killable()
	i, d := c.create()
	c.crash()
	before := i.begun()
	var status adapter.Status
	answer := c.get(adapter.OperationPath(d.OperationID), &status)
	c.unless(answer.status == http.StatusOK && status.State == adapter.StateSucceeded, "after kill -9 the status of what had succeeded was answered %s", answer.say())
	again := c.put(d)
	c.unless(again.status == http.StatusOK, "after kill -9 the repeat of what had succeeded was answered %s", again.say())
	c.quiet(i, before, "kill -9 and a repeat of what had succeeded")
}

func crashFeed(c *check) {
	c.killable()
	// Some cheap operations first, so that a counter that begins anew after the crash is seen to.
	for range 10 {
		c.carry(c.instance(), adapter.InstanceDecommission, nil)
	}
	cursor := c.drain("")
	_, d, rule := c.middle()
	seen := c.page(cursor, 0)
	if len(seen.Operations) > 0 {
		cursor = seen.Cursor
	}
	c.crash()
	rule.Lift()
	c.follow(cursor, map[string]bool{d.OperationID: true})
}

func crashInstance(c *check) {
	c.killable()
	i, _ := c.create()
	c.crash()
	seen, answer := c.observe(i)
	c.unless(answer.status == http.StatusOK && seen.InstanceID == i.as.ID, "after kill -9 the instance was observed as %s", answer.say())
}
