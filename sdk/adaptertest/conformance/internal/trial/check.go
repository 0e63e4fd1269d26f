// Package trial is the toolkit of the clauses of the conformance suite: a suite that runs them
// against one adapter, and a check per clause that sends requests, creates instances, holds node
// tasks back and requires what the contract demands.
package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/run"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// maxExchanges is the number of a clause's last exchanges that a report shows.
const maxExchanges = 4

// Check is one clause under way.
type Check struct {
	*Suite
	Ctx    context.Context
	clause Clause

	mu        sync.Mutex
	exchanges []run.Exchange
	instances []*Instance
	rules     []*standin.Rule
	Opened    []string
	sent      map[string]letterSent
	began     int // node tasks that were requested before the clause
}

// perform runs the clause and returns how it ended; nil when it passed.
func (c *Check) perform() (ended *halt) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case halt:
			ended = &thrown
		default:
			panic(thrown)
		}
	}()
	for _, need := range c.clause.Needs {
		if c.Results[need] != run.Passed {
			c.Skip("it needs %s, which has not passed", need)
		}
	}
	c.clause.Run(c)
	return nil
}

// Fail ends the clause: the adapter broke the rule.
func (c *Check) Fail(format string, args ...any) {
	panic(halt{run.Failed, fmt.Sprintf(format, args...)})
}

// Skip ends the clause: it does not apply.
func (c *Check) Skip(format string, args ...any) {
	panic(halt{run.Skipped, fmt.Sprintf(format, args...)})
}

// NotRun ends the clause: the suite lacks the means.
func (c *Check) NotRun(format string, args ...any) {
	panic(halt{run.NotRun, fmt.Sprintf(format, args...)})
}

// Require ends the clause as failed unless the condition is true.
func (c *Check) Require(good bool, format string, args ...any) {
	if !good {
		c.Fail(format, args...)
	}
}

// Try sends a letter and keeps it with its answer for the report.
func (c *Check) Try(l Letter) (Reply, error) {
	answer, err := c.send(c.Ctx, l)
	c.Remember(l, answer, err)
	return answer, err
}

// Call sends a letter that must be answered.
func (c *Check) Call(l Letter) Reply {
	answer, err := c.Try(l)
	c.Require(err == nil, "%s %s was not answered: %v", l.Method, l.Target, err)
	return answer
}

// Remember keeps an exchange for the report of a failure, without tokens.
func (c *Check) Remember(l Letter, answer Reply, err error) {
	exchange := run.Exchange{Sent: l.Method + " " + l.Target, Came: answer.whole()}
	if len(l.Body) > 0 {
		exchange.Sent += " " + text.Clip(string(l.Body), maxKept)
	}
	if err != nil {
		exchange.Came = "no answer: " + err.Error()
	}
	c.differ(l, answer, &exchange)
	for _, part := range []*string{&exchange.Sent, &exchange.Came} {
		*part = text.HideTokens(*part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchanges = append(c.exchanges, exchange)
	if over := len(c.exchanges) - maxExchanges; over > 0 {
		c.exchanges = c.exchanges[over:]
	}
}

// Get reads a path and decodes a good answer.
func (c *Check) Get(target string, out any) Reply {
	answer := c.Call(Letter{Method: http.MethodGet, Target: target})
	if answer.Status == http.StatusOK {
		c.Decode(answer, target, out)
	}
	return answer
}

// Decode reads the body of an answer, which must have the contract's shape.
func (c *Check) Decode(answer Reply, what string, out any) {
	err := json.Unmarshal(answer.Body, out)
	c.Require(err == nil, "the answer of %s does not have the contract's shape: %v", what, err)
}

// Put dispatches and returns the answer as it is.
func (c *Check) Put(d adapter.Dispatch) Reply {
	return c.Call(Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(d)})
}

// Encode returns a value as JSON.
func (c *Check) Encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		c.NotRun("the suite could not encode a request: %v", err)
	}
	return raw
}

// Accept dispatches and requires that the adapter accepts it, now or because it did before.
func (c *Check) Accept(d adapter.Dispatch) adapter.Status {
	c.mu.Lock()
	c.Opened = append(c.Opened, d.OperationID)
	c.mu.Unlock()
	return c.Taken(d, c.Put(d))
}

// Taken requires that an answer to a dispatch accepts it, and returns the status.
func (c *Check) Taken(d adapter.Dispatch, answer Reply) adapter.Status {
	c.Require(answer.Status == http.StatusOK || answer.Status == http.StatusAccepted,
		"the dispatch of %s (attempt %d) must be answered with 202, or 200 when it has ended, but returned %s", d.Kind,
		d.Attempt, answer.Say())
	var status adapter.Status
	c.Decode(answer, "the dispatch", &status)
	c.Require(status.OperationID == d.OperationID, "the status is of operation %q", status.OperationID)
	return status
}

// Status reads the status of an operation, which must be known.
func (c *Check) Status(id string) adapter.Status {
	var status adapter.Status
	answer := c.Get(adapter.OperationPath(id), &status)
	c.Require(answer.Status == http.StatusOK, "the status of a dispatched operation returned %s", answer.Say())
	return status
}

// Await follows an operation to its end, within the bound of an operation.
func (c *Check) Await(id string) adapter.Status { return c.AwaitFor(id, c.Bounds.Operation) }

// AwaitFor follows an operation to its end, within patience.
func (c *Check) AwaitFor(id string, patience time.Duration) adapter.Status {
	end, step := time.Now().Add(patience), 5*time.Millisecond
	for {
		status := c.Status(id)
		if status.State.Terminal() {
			return status
		}
		c.Require(time.Now().Before(end),
			"the operation was still %q (%s %d%%) after %s", status.State, status.Phase, status.Percent, patience)
		c.Pause(step)
		step = min(2*step, 250*time.Millisecond)
	}
}

// Ends waits for the end of an operation, and reports whether it came within patience.
func (c *Check) Ends(id string, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.Ctx, patience)
	defer cancel()
	for c.open(ctx, id) {
		if !pause(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// Cancel requests a cancel once and returns the result.
func (c *Check) Cancel(id string, attempt int) adapter.CancelResult {
	answer := c.Call(Letter{
		Method: http.MethodPost, Target: adapter.CancelPath(id),
		Body: c.Encode(adapter.CancelRequest{Attempt: attempt}), Patience: c.Bounds.Request + c.Bounds.Grace,
	})
	c.Require(answer.Status == http.StatusOK, "the cancel returned %s", answer.Say())
	var result adapter.CancelResult
	c.Decode(answer, "the cancel", &result)
	c.Require(result.Outcome.Valid(), "the outcome is %q, not canceled, too_late or unknown", result.Outcome)
	return result
}

// Resolve repeats a cancel until its outcome is known, within the bound of an operation.
func (c *Check) Resolve(id string, attempt int) adapter.CancelResult {
	for end := time.Now().Add(c.Bounds.Operation); ; {
		result := c.Cancel(id, attempt)
		if result.Outcome != adapter.CancelUnknown {
			return result
		}
		c.Require(time.Now().Before(end), "the outcome was still unknown after %s", c.Bounds.Operation)
		c.Pause(100 * time.Millisecond)
	}
}

// Pause waits. It ends the clause when the clause's time is over.
func (c *Check) Pause(d time.Duration) {
	c.Require(pause(c.Ctx, d), "the clause had not ended after %s", c.Bounds.Clause)
}

// Succeed awaits the end of an operation, which must succeed.
func (c *Check) Succeed(id string) adapter.Status {
	status := c.Await(id)
	c.Require(status.State == adapter.StateSucceeded, "the operation ended %q: %s", status.State, Explain(status))
	return status
}

// Explain returns why an operation ended as it did.
func Explain(status adapter.Status) string {
	if status.Error == nil {
		return status.Message
	}
	return status.Error.Code + ": " + status.Error.Message
}

// Refused requires an error answer of one of these statuses with a code and a message.
func (c *Check) Refused(what string, answer Reply, statuses ...int) adapter.ErrorBody {
	fits := false
	for _, status := range statuses {
		fits = fits || answer.Status == status
	}
	c.Require(fits, "%s must be answered with %v, but returned %s", what, statuses, answer.Say())
	body, ok := answer.fault()
	c.Require(ok, "%s returned %d without the error body {code, message}: %s", what, answer.Status, answer.Say())
	return body
}

// settle ends what the clause has left under way, so that it does not disturb the next one.
func (c *Check) settle() {
	for _, rule := range c.rules {
		rule.Lift()
	}
	c.Platform.Forget()
	ctx, cancel := context.WithTimeout(c.Suite.Ctx, c.Bounds.Grace)
	defer cancel()
	for _, id := range c.Opened {
		for c.open(ctx, id) && pause(ctx, 10*time.Millisecond) {
		}
	}
	for _, held := range c.instances {
		if held != c.Standing && held != c.Neighbour {
			held.wipe()
		}
	}
}

// open reports whether an operation is under way.
func (c *Check) open(ctx context.Context, id string) bool {
	status, known := c.Known(ctx, id)
	return known && !status.State.Terminal()
}

// halt is thrown to end a clause from anywhere below it. Only [Check.perform] recovers it.
type halt struct {
	outcome run.Outcome
	reason  string
}
