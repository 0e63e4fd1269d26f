package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// maxExchanges is how many of a clause's last exchanges a report shows.
const maxExchanges = 4

// check is one clause under way.
type check struct {
	*suite
	ctx    context.Context
	clause Clause

	mu        sync.Mutex
	exchanges []Exchange
	instances []*instance
	rules     []*standin.Rule
	opened    []string
}

// perform runs the clause and says how it ended; nil means that it passed.
func (c *check) perform() (ended *halt) {
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
		if c.results[need] != Passed {
			c.skip("it needs %s, which has not passed", need)
		}
	}
	c.clause.run(c)
	return nil
}

// fail ends the clause: the adapter broke the rule.
func (c *check) fail(format string, args ...any) {
	panic(halt{Failed, fmt.Sprintf(format, args...)})
}

// skip ends the clause: it does not apply.
func (c *check) skip(format string, args ...any) {
	panic(halt{Skipped, fmt.Sprintf(format, args...)})
}

// notRun ends the clause: the suite lacks the means.
func (c *check) notRun(format string, args ...any) {
	panic(halt{NotRun, fmt.Sprintf(format, args...)})
}

// unless fails when what ought to be is not.
func (c *check) unless(good bool, format string, args ...any) {
	if !good {
		c.fail(format, args...)
	}
}

// try sends a letter and remembers it with its answer.
func (c *check) try(l letter) (reply, error) {
	answer, err := c.send(c.ctx, l)
	c.remember(l, answer, err)
	return answer, err
}

// call is try for a letter that must be answered.
func (c *check) call(l letter) reply {
	answer, err := c.try(l)
	c.unless(err == nil, "%s %s was not answered: %v", l.method, l.target, err)
	return answer
}

func (c *check) remember(l letter, answer reply, err error) {
	exchange := Exchange{Sent: l.method + " " + l.target, Came: answer.say()}
	if len(l.body) > 0 {
		exchange.Sent += " " + clip(string(l.body), 400)
	}
	if err != nil {
		exchange.Came = "no answer: " + err.Error()
	}
	for _, part := range []*string{&exchange.Sent, &exchange.Came} {
		*part = hideTokens(*part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchanges = append(c.exchanges, exchange)
	if over := len(c.exchanges) - maxExchanges; over > 0 {
		c.exchanges = c.exchanges[over:]
	}
}

// hideTokens takes the stand-in's tokens out of what a report shows.
func hideTokens(text string) string {
	for {
		before, after, found := strings.Cut(text, "gpu_op_")
		if !found {
			return text
		}
		rest := strings.TrimLeft(after, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
		text = before + "(token)" + rest
	}
}

// get reads a path and decodes a good answer.
func (c *check) get(target string, out any) reply {
	answer := c.call(letter{method: http.MethodGet, target: target})
	if answer.status == http.StatusOK {
		c.decode(answer, target, out)
	}
	return answer
}

func (c *check) decode(answer reply, what string, out any) {
	err := json.Unmarshal(answer.body, out)
	c.unless(err == nil, "the answer of %s is not of the contract's shape: %v", what, err)
}

// put dispatches and returns the answer as it is.
func (c *check) put(d adapter.Dispatch) reply {
	return c.call(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(d)})
}

func (c *check) encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		c.notRun("the suite could not encode a request: %v", err)
	}
	return raw
}

// accept dispatches and requires that it is taken, now or before.
func (c *check) accept(d adapter.Dispatch) adapter.Status {
	c.mu.Lock()
	c.opened = append(c.opened, d.OperationID)
	c.mu.Unlock()
	return c.taken(d, c.put(d))
}

// taken requires that an answer to a dispatch is its acceptance.
func (c *check) taken(d adapter.Dispatch, answer reply) adapter.Status {
	c.unless(answer.status == http.StatusOK || answer.status == http.StatusAccepted,
		"the dispatch of %s (attempt %d) ought to be answered 202, or 200 when it has ended, and was answered %s", d.Kind, d.Attempt, answer.say())
	var status adapter.Status
	c.decode(answer, "the dispatch", &status)
	c.unless(status.OperationID == d.OperationID, "the status is of operation %q", status.OperationID)
	return status
}

// status reads an operation that must be known.
func (c *check) status(id string) adapter.Status {
	var status adapter.Status
	answer := c.get(adapter.OperationPath(id), &status)
	c.unless(answer.status == http.StatusOK, "the status of a dispatched operation was answered %s", answer.say())
	return status
}

// await follows an operation to its end, within the bound of an operation.
func (c *check) await(id string) adapter.Status { return c.awaitFor(id, c.bounds.Operation) }

func (c *check) awaitFor(id string, patience time.Duration) adapter.Status {
	end, step := time.Now().Add(patience), 5*time.Millisecond
	for {
		status := c.status(id)
		if status.State.Terminal() {
			return status
		}
		c.unless(time.Now().Before(end), "the operation was still %q (%s %d%%) after %s", status.State, status.Phase, status.Percent, patience)
		c.pause(step)
		step = min(2*step, 250*time.Millisecond)
	}
}

// pause waits, and ends the clause when its time is over.
func (c *check) pause(d time.Duration) {
	c.unless(pause(c.ctx, d), "the clause was not over after %s", c.bounds.Clause)
}

// succeed awaits an operation that must succeed.
func (c *check) succeed(id string) adapter.Status {
	status := c.await(id)
	c.unless(status.State == adapter.StateSucceeded, "the operation ended %q: %s", status.State, explain(status))
	return status
}

func explain(status adapter.Status) string {
	if status.Error == nil {
		return status.Message
	}
	return status.Error.Code + ": " + status.Error.Message
}

// refused requires an error answer of one of these statuses with a code and a message.
func (c *check) refused(what string, answer reply, statuses ...int) adapter.ErrorBody {
	fits := false
	for _, status := range statuses {
		fits = fits || answer.status == status
	}
	c.unless(fits, "%s ought to be answered with %v, and was answered %s", what, statuses, answer.say())
	body, ok := answer.fault()
	c.unless(ok, "%s was answered %d without the error body {code, message}: %s", what, answer.status, answer.say())
	return body
}

// settle ends what the clause has left under way, so that it does not disturb the next one.
func (c *check) settle() {
	for _, rule := range c.rules {
		rule.Lift()
	}
	c.platform.Forget()
	ctx, cancel := context.WithTimeout(c.suite.ctx, c.bounds.Grace)
	defer cancel()
	for _, id := range c.opened {
		for c.open(ctx, id) && pause(ctx, 10*time.Millisecond) {
		}
	}
	for _, held := range c.instances {
		if held != c.standing && held != c.neighbour {
			held.wipe()
		}
	}
}

// open says whether an operation is under way.
func (c *check) open(ctx context.Context, id string) bool {
	answer, err := c.send(ctx, letter{method: http.MethodGet, target: adapter.OperationPath(id)})
	var status adapter.Status
	if err != nil || answer.status != http.StatusOK || json.Unmarshal(answer.body, &status) != nil {
		return false
	}
	return !status.State.Terminal()
}
