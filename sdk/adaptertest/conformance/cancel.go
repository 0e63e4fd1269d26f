package conformance

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inCancel = "POST /v1/operations/{id}/cancel"

func cancelClauses() []Clause {
	return []Clause{
		{ID: "cancel.running", Section: inCancel, Rule: "a cancel of an operation under way says the truth: canceled is canceled, too late runs on to its end", Needs: []string{created},
			Fix: "answer canceled only when the operation's state is canceled; else too_late or unknown", run: cancelRunning},
		{ID: "cancel.stops", Section: inCancel, Rule: "after the answer canceled nothing more is done", Needs: []string{"cancel.running"},
			Fix: "stop the run and cancel the node tasks it waits for before you answer", run: cancelStops},
		{ID: "cancel.repeat", Section: inCancel, Rule: "a repeat of a cancel is answered by how the operation stands", Needs: []string{"cancel.running"},
			Fix: "answer canceled (or too_late) for an operation that was canceled, and leave it so", run: cancelRepeat},
		{ID: "cancel.final", Section: inFence, Rule: "a canceled operation stays canceled, also when it is dispatched again", Needs: []string{"cancel.running"},
			Fix: "answer a dispatch of a canceled operation 200 with its end, at any attempt", run: cancelFinal},
		{ID: "cancel.ended", Section: inCancel, Rule: "a cancel of an operation that has succeeded is too late and changes nothing", Needs: []string{created},
			Fix: "answer too_late for what has ended", run: cancelEnded},
		{ID: "cancel.unknown", Section: inCancel, Rule: "a cancel of an operation that was never dispatched is unknown", Needs: []string{created},
			Fix: "answer 200 {\"outcome\":\"unknown\"}, or 404", run: cancelUnknown},
		{ID: "cancel.stale", Section: inCancel, Rule: "a cancel with a lower attempt than the highest seen is refused with 409 STALE_FENCE", Needs: []string{"attempt.higher"},
			Fix: "compare the attempt of a cancel like that of a dispatch", run: cancelStale},
		{ID: "cancel.race", Section: inCancel, Rule: "a cancel that races with the end agrees with how the operation ended", Needs: []string{"cancel.running"},
			Fix: "decide cancel and end under one lock: whichever came first is true for both", run: cancelRace},
	}
}

// cancel asks once.
func (c *check) cancel(id string, attempt int) adapter.CancelResult {
	answer := c.call(letter{method: http.MethodPost, target: adapter.CancelPath(id), body: c.encode(adapter.CancelRequest{Attempt: attempt}), patience: c.bounds.Request + c.bounds.Grace})
	c.unless(answer.status == http.StatusOK, "the cancel was answered %s", answer.say())
	var result adapter.CancelResult
	c.decode(answer, "the cancel", &result)
	c.unless(result.Outcome.Valid(), "the outcome is %q, not canceled, too_late or unknown", result.Outcome)
	return result
}

// resolve asks until the outcome is not unknown any more, within the bound of an operation.
func (c *check) resolve(id string, attempt int) adapter.CancelResult {
	for end := time.Now().Add(c.bounds.Operation); ; {
		result := c.cancel(id, attempt)
		if result.Outcome != adapter.CancelUnknown {
			return result
		}
		c.unless(time.Now().Before(end), "the outcome was still unknown after %s", c.bounds.Operation)
		c.pause(100 * time.Millisecond)
	}
}

// canceled holds a create in its middle and cancels it. What the adapter does to clean up is not
// held back.
func (c *check) canceled() (*instance, adapter.Dispatch, func()) {
	i, d, rule := c.middle()
	rule.Close()
	result := c.resolve(d.OperationID, 1)
	if result.Outcome != adapter.CancelDone {
		rule.Lift()
		end := c.await(d.OperationID)
		c.unless(end.State != adapter.StateCanceled, "the cancel was answered too_late, and the operation ended canceled")
		c.skip("the adapter says that a create cannot be stopped: %s", result.Message)
	}
	return i, d, rule.Lift
}

func cancelRunning(c *check) {
	_, d, rule := c.middle()
	rule.Close()
	result := c.resolve(d.OperationID, 1)
	if result.Outcome == adapter.CancelDone {
		status := c.status(d.OperationID)
		c.unless(status.State == adapter.StateCanceled, "the cancel was answered canceled, and the operation is %q", status.State)
		return
	}
	rule.Lift()
	status := c.await(d.OperationID)
	c.unless(status.State != adapter.StateCanceled, "the cancel was answered too_late, and the operation ended canceled")
}

func cancelStops(c *check) {
	i, d, lift := c.canceled()
	before := i.begun()
	lift()
	c.quiet(i, before, "the cancel was answered canceled")
	status := c.status(d.OperationID)
	c.unless(status.State == adapter.StateCanceled, "the operation is %q some time after it was canceled", status.State)
}

func cancelRepeat(c *check) {
	_, d, _ := c.canceled()
	again := c.cancel(d.OperationID, 1)
	c.unless(again.Outcome != adapter.CancelUnknown, "a repeat of a cancel that was answered canceled is answered unknown")
	status := c.status(d.OperationID)
	c.unless(status.State == adapter.StateCanceled, "after a repeat of the cancel the operation is %q", status.State)
}

func cancelFinal(c *check) {
	i, d, lift := c.canceled()
	lift()
	c.pause(c.bounds.Settle)
	before := i.begun()
	for attempt := 1; attempt <= 2; attempt++ {
		d.Attempt = attempt
		status := c.accept(d)
		c.unless(status.State == adapter.StateCanceled, "a dispatch (attempt %d) of a canceled operation made it %q", attempt, status.State)
	}
	c.quiet(i, before, "dispatches of a canceled operation")
}

func cancelEnded(c *check) {
	_, d := c.create()
	result := c.cancel(d.OperationID, 1)
	c.unless(result.Outcome == adapter.CancelTooLate, "a cancel of an operation that had succeeded was answered %q", result.Outcome)
	status := c.status(d.OperationID)
	c.unless(status.State == adapter.StateSucceeded, "the operation is %q after a cancel that came too late", status.State)
}

func cancelUnknown(c *check) {
	answer := c.call(letter{method: http.MethodPost, target: adapter.CancelPath(newID("op")), body: c.encode(adapter.CancelRequest{Attempt: 1})})
	if answer.status == http.StatusNotFound {
		c.refused("a cancel of an unknown operation", answer, http.StatusNotFound)
		return
	}
	var result adapter.CancelResult
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	c.decode(answer, "the cancel", &result)
	c.unless(result.Outcome == adapter.CancelUnknown, "a cancel of an operation that was never dispatched was answered %q", result.Outcome)
}

func cancelStale(c *check) {
	_, d, rule := c.middle()
	d.Attempt = 2
	c.accept(d)
	answer := c.call(letter{method: http.MethodPost, target: adapter.CancelPath(d.OperationID), body: c.encode(adapter.CancelRequest{Attempt: 1})})
	body := c.refused("a cancel with attempt 1 after attempt 2", answer, http.StatusConflict)
	c.unless(body.Code == adapter.CodeStaleFence, "it was refused with %s, not %s", body.Code, adapter.CodeStaleFence)
	rule.Lift()
	c.succeed(d.OperationID)
}

// race is where a cancel meets a create.
type race struct {
	quarter int           // of the create's node tasks, at which it is held
	lead    time.Duration // by how much the cancel is ahead of its going on
}

// races go from a create's beginning to its end. Its last task is tried with several leads: the closer the end, the more there is
// to get wrong.
func (c *check) races() []race {
	return []race{
		{quarter: 0}, {quarter: 1}, {quarter: 2}, {quarter: 3}, {quarter: 3, lead: c.bounds.Settle / 40},
		{quarter: 3, lead: c.bounds.Settle / 8}, {quarter: 3, lead: c.bounds.Settle / 2}, {quarter: 4},
	}
}

// cancelRace lets a create go on at about the moment in which it is canceled, at several points
// between its beginning and its end.
func cancelRace(c *check) {
	for _, at := range c.races() {
		i := c.instance()
		d := c.dispatch(i, adapter.InstanceCreate)
		skip := at.quarter * max(c.baseline.total(), 1) / 4
		rule := c.hold(i, d, skip)
		c.accept(d)
		if skip < c.baseline.total() {
			c.caught(rule, d.OperationID)
		}
		done := make(chan struct{})
		time.AfterFunc(at.lead, func() {
			defer close(done)
			rule.Lift()
		})
		result := c.resolve(d.OperationID, 1)
		<-done
		ended := c.await(d.OperationID).State
		c.unless((ended == adapter.StateCanceled) == (result.Outcome == adapter.CancelDone), "the cancel was answered %s, and the operation ended %q", result.Outcome, ended)
	}
}
