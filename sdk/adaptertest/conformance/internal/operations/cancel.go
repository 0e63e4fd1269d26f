package operations

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inCancel = "POST /v1/operations/{id}/cancel"

// Cancel returns the clauses on cancels.
func Cancel() []trial.Clause {
	return []trial.Clause{
		{ID: "cancel.running", Section: inCancel, Needs: []string{trial.Created}, Run: cancelRunning,
			Rule: "a cancel of an operation under way is answered truthfully: canceled has stopped, too_late runs on",
			Fix:  "answer canceled only when the operation's state is canceled; else too_late or unknown"},
		{ID: "cancel.stops", Section: inCancel, Needs: []string{"cancel.running"}, Run: cancelStops,
			Rule: "after the answer canceled nothing more is done",
			Fix:  "stop the run and cancel the node tasks it waits for before you answer"},
		{ID: "cancel.repeat", Section: inCancel, Needs: []string{"cancel.running"}, Run: cancelRepeat,
			Rule: "a repeat of a cancel is answered with what became of the operation",
			Fix:  "answer canceled (or too_late) for an operation that was canceled, and keep it canceled"},
		{ID: "cancel.final", Section: trial.InFence, Needs: []string{"cancel.running"}, Run: cancelFinal,
			Rule: "a canceled operation stays canceled, also when it is dispatched again",
			Fix:  "answer a dispatch of a canceled operation with 200 and its result, at any attempt"},
		{ID: "cancel.ended", Section: inCancel, Needs: []string{trial.Created}, Run: cancelEnded,
			Rule: "a cancel of an operation that has succeeded is too late and changes nothing",
			Fix:  "answer too_late for what has ended"},
		{ID: "cancel.unknown", Section: inCancel, Needs: []string{trial.Created}, Run: cancelUnknown,
			Rule: "a cancel of an operation that was never dispatched is unknown",
			Fix:  "answer 200 {\"outcome\":\"unknown\"}, or 404"},
		{ID: "cancel.tombstone", Section: inCancel, Needs: []string{"cancel.unknown"}, Run: cancelTombstone,
			Rule: "a dispatch that finds the tombstone of its cancel ends canceled and starts nothing",
			Fix:  "store the tombstone before you answer; answer a dispatch of its attempt or lower 200 canceled"},
		{ID: "cancel.stale", Section: inCancel, Needs: []string{"attempt.higher"}, Run: cancelStale,
			Rule: "a cancel with a lower attempt than the highest seen is refused with 409 STALE_FENCE",
			Fix:  "compare the attempt of a cancel like that of a dispatch"},
		{ID: "cancel.race", Section: inCancel, Needs: []string{"cancel.running"}, Run: cancelRace,
			Rule: "a cancel that races with the end agrees with how the operation ended",
			Fix:  "decide cancel and end under one lock: the first of them holds for both"},
	}
}

// cancelHeld holds a create in its middle and cancels it. The adapter's clean-up is not held back.
func cancelHeld(c *trial.Check) (*trial.Instance, adapter.Dispatch, func()) {
	i, d, rule := c.Middle()
	rule.Close()
	result := c.Resolve(d.OperationID, 1)
	if result.Outcome != adapter.CancelDone {
		rule.Lift()
		end := c.Await(d.OperationID)
		c.Require(end.State != adapter.StateCanceled, "the cancel returned too_late, but the operation ended canceled")
		c.Skip("the adapter reports that a create cannot be stopped: %s", result.Message)
	}
	return i, d, rule.Lift
}

// cancelRunning cancels a create in its middle. Both canceled and too late are good answers, as
// long as the end agrees.
func cancelRunning(c *trial.Check) {
	_, d, rule := c.Middle()
	rule.Close()
	result := c.Resolve(d.OperationID, 1)
	if result.Outcome == adapter.CancelDone {
		status := c.Status(d.OperationID)
		c.Require(status.State == adapter.StateCanceled,
			"the cancel returned canceled, but the operation is %q", status.State)
		return
	}
	rule.Lift()
	status := c.Await(d.OperationID)
	c.Require(status.State != adapter.StateCanceled, "the cancel returned too_late, but the operation ended canceled")
}

func cancelStops(c *trial.Check) {
	i, d, lift := cancelHeld(c)
	before := i.Begun()
	lift()
	c.StaysQuiet(i, before, "the cancel returned canceled")
	status := c.Status(d.OperationID)
	c.Require(status.State == adapter.StateCanceled, "the operation is %q some time after it was canceled",
		status.State)
}

func cancelRepeat(c *trial.Check) {
	_, d, _ := cancelHeld(c)
	again := c.Cancel(d.OperationID, 1)
	c.Require(again.Outcome != adapter.CancelUnknown,
		"a repeat of a cancel that returned canceled returned unknown")
	status := c.Status(d.OperationID)
	c.Require(status.State == adapter.StateCanceled, "after a repeat of the cancel the operation is %q", status.State)
}

// cancelFinal dispatches a canceled operation again, at the same attempt and at a higher one.
func cancelFinal(c *trial.Check) {
	i, d, lift := cancelHeld(c)
	lift()
	c.Pause(c.Bounds.Settle)
	before := i.Begun()
	for attempt := 1; attempt <= 2; attempt++ {
		d.Attempt = attempt
		status := c.Accept(d)
		c.Require(status.State == adapter.StateCanceled,
			"after a dispatch (attempt %d) a canceled operation is %q", attempt, status.State)
	}
	c.StaysQuiet(i, before, "dispatches of a canceled operation")
}

func cancelEnded(c *trial.Check) {
	_, d := c.Create()
	result := c.Cancel(d.OperationID, 1)
	c.Require(result.Outcome == adapter.CancelTooLate,
		"a cancel of an operation that had succeeded returned %q", result.Outcome)
	status := c.Status(d.OperationID)
	c.Require(status.State == adapter.StateSucceeded,
		"the operation is %q after a cancel that came too late", status.State)
}

// cancelUnknown cancels an operation that was never dispatched.
func cancelUnknown(c *trial.Check) {
	answer := c.Call(trial.Letter{
		Method: http.MethodPost, Target: adapter.CancelPath(trial.NewID("op")),
		Body: c.Encode(adapter.CancelRequest{Attempt: 1}),
	})
	if answer.Status == http.StatusNotFound {
		c.Refused("a cancel of an unknown operation", answer, http.StatusNotFound)
		return
	}
	var result adapter.CancelResult
	c.Require(answer.Status == http.StatusOK, "the cancel returned %s", answer.Say())
	c.Decode(answer, "the cancel", &result)
	c.Require(result.Outcome == adapter.CancelUnknown,
		"a cancel of an operation that was never dispatched returned %q", result.Outcome)
}

// cancelTombstone cancels an operation before it is dispatched, as happens when a dispatch is under way while its
// operation ends. Tombstones are optional.
func cancelTombstone(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	answer := c.Call(trial.Letter{
		Method: http.MethodPost, Target: adapter.CancelPath(d.OperationID),
		Body: c.Encode(adapter.CancelRequest{Attempt: 1}),
	})
	var result adapter.CancelResult
	if answer.Status == http.StatusOK {
		c.Decode(answer, "the cancel", &result)
	}
	if !result.Tombstone {
		c.Skip("the adapter keeps no tombstones")
	}
	status := c.Accept(d)
	c.Require(status.State == adapter.StateCanceled,
		"the cancel returned a tombstone, but a dispatch of the same attempt is %q", status.State)
	c.StaysQuiet(i, i.Begun(), "a dispatch that found a tombstone")
	status = c.Status(d.OperationID)
	c.Require(status.State == adapter.StateCanceled, "some time after it found a tombstone the operation is %q",
		status.State)
}

// cancelStale cancels with a lower attempt than the highest.
func cancelStale(c *trial.Check) {
	_, d, rule := c.Middle()
	d.Attempt = 2
	c.Accept(d)
	answer := c.Call(trial.Letter{
		Method: http.MethodPost, Target: adapter.CancelPath(d.OperationID),
		Body: c.Encode(adapter.CancelRequest{Attempt: 1}),
	})
	body := c.Refused("a cancel with attempt 1 after attempt 2", answer, http.StatusConflict)
	c.Require(body.Code == adapter.CodeStaleFence, "it was refused with %s, not %s", body.Code, adapter.CodeStaleFence)
	rule.Lift()
	c.Succeed(d.OperationID)
}

// race is the moment in which a cancel meets a create.
type race struct {
	quarter int           // of the create's node tasks, at which it is held
	lead    time.Duration // by how much the cancel is ahead of its going on
}

// racesOf returns moments from a create's beginning to its end. Its last task is tried with several
// leads: the closer the end, the more can go wrong.
func racesOf(c *trial.Check) []race {
	return []race{
		{quarter: 0}, {quarter: 1}, {quarter: 2}, {quarter: 3}, {quarter: 3, lead: c.Bounds.Settle / 40},
		{quarter: 3, lead: c.Bounds.Settle / 8}, {quarter: 3, lead: c.Bounds.Settle / 2}, {quarter: 4},
	}
}

// cancelRace lets a create go on at about the moment in which it is canceled, at several points
// between its beginning and its end.
func cancelRace(c *trial.Check) {
	for _, at := range racesOf(c) {
		i := c.NewInstance()
		d := c.Dispatch(i, adapter.InstanceCreate)
		skip := at.quarter * max(c.Baseline.Total(), 1) / 4
		rule := c.Hold(i, d, skip)
		c.Accept(d)
		if skip < c.Baseline.Total() {
			c.AwaitCaught(rule, d.OperationID)
		}
		done := make(chan struct{})
		time.AfterFunc(at.lead, func() {
			defer close(done)
			rule.Lift()
		})
		result := c.Resolve(d.OperationID, 1)
		<-done
		ended := c.Await(d.OperationID).State
		c.Require((ended == adapter.StateCanceled) == (result.Outcome == adapter.CancelDone),
			"the cancel returned %s, but the operation ended %q", result.Outcome, ended)
	}
}
