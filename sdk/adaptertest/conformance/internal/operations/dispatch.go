package operations

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inIdempotency = "PUT /v1/operations/{id}, Idempotency"

// Dispatch returns the clauses on dispatches.
func Dispatch() []trial.Clause {
	needs := []string{trial.Created}
	return []trial.Clause{
		{ID: trial.Created, Section: trial.InDispatch, Run: dispatchCompletes,
			Rule: "a create is accepted with 202 and ends succeeded with every member active",
			Fix: "the members' states in the status and the error, if there is one, say where it stopped; the " +
				"adapter's last log lines are shown where the check started it, and are in the report of --json"},
		{ID: "dispatch.idempotent", Section: inIdempotency, Needs: needs, Run: dispatchIdempotent,
			Rule: "a repeat of an operation that has ended is answered 200 with its result, and nothing is done again",
			Fix:  "keep ended operations by id and answer a repeat from them"},
		{ID: "dispatch.repeat", Section: inIdempotency, Needs: needs, Run: dispatchRepeat,
			Rule: "a repeat of an operation under way is the same operation, and nothing is done twice",
			Fix:  "look up the id before you start; one operation has one run"},
		{ID: "dispatch.concurrent", Section: inIdempotency, Needs: needs, Run: dispatchConcurrent,
			Rule: "many dispatches of one operation at the same time are one operation",
			Fix:  "look up and start in one step, under a lock or a unique key"},
		{ID: "dispatch.not_specification", Section: inIdempotency, Needs: needs, Run: dispatchNotSpecification,
			Rule: "token, deadline, trace, force, and a member's status, cordon, labels and reachability are not " +
				"part of the specification",
			Fix: "compare operationId, kind, instance, members (without these), targets and change, nothing else"},
		{ID: "dispatch.canonical", Section: inIdempotency, Needs: needs, Run: dispatchCanonical,
			Rule: "the order of keys and white space are not part of the specification",
			Fix:  "compare parsed values, or hash them with sorted keys"},
		{ID: "dispatch.mismatch", Section: inIdempotency, Needs: needs, Run: dispatchMismatch,
			Rule: "the same id with another specification is refused with 409 BODY_MISMATCH",
			Fix:  "keep a hash of the specification with the operation and compare it"},
		{ID: "dispatch.unknown_fields", Section: "Compatibility", Needs: needs, Run: dispatchUnknownFields,
			Rule: "fields that the adapter does not know are ignored",
			Fix:  "do not refuse unknown fields: a newer platform may send them"},
		{ID: "dispatch.lost_reply", Section: inIdempotency, Needs: needs, Run: dispatchLostReply,
			Rule: "a dispatch whose reply was lost continues, and its repeat is the same operation",
			Fix:  "do not tie the operation to the request that started it: a broken connection is not a cancel"},
	}
}

// dispatchCompletes creates the instance that later clauses share, and keeps what a clean create
// does as their baseline.
func dispatchCompletes(c *trial.Check) {
	c.Supports(adapter.InstanceCreate)
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	c.Opened = append(c.Opened, d.OperationID)
	answer := c.Put(d)
	c.Require(answer.Status == http.StatusAccepted,
		"a new operation must be answered with 202, but returned %s", answer.Say())
	first := c.Taken(d, answer)
	c.Shape(answer, "Status")
	c.Require(first.State.Valid() && first.Attempt == d.Attempt,
		"the status has state %q and attempt %d", first.State, first.Attempt)
	status := c.Succeed(d.OperationID)
	c.Shape(c.Call(trial.Letter{Method: http.MethodGet, Target: adapter.OperationPath(d.OperationID)}), "Status")
	c.Require(status.Percent >= 0 && status.Percent <= 100, "percent is %d", status.Percent)
	for _, member := range i.Members {
		at := slices.IndexFunc(status.Members, func(u adapter.MemberUpdate) bool { return u.ID == member.ID })
		c.Require(at >= 0, "the status does not report member %s (%s %d)", member.ID, member.ComponentKey, member.Index)
		c.Require(status.Members[at].Status == adapter.MemberActive,
			"member %s is %q after a create that succeeded", member.ID, status.Members[at].Status)
	}
	i.Serving()
	c.Suite.Standing, c.Suite.Baseline = i, i.EffectsOf(d.OperationID)
}

// dispatchIdempotent repeats the dispatch of an operation that has succeeded.
func dispatchIdempotent(c *trial.Check) {
	i, d := c.Create()
	before := i.Begun()
	answer := c.Put(d)
	status := c.Taken(d, answer)
	c.Require(answer.Status == http.StatusOK && status.State == adapter.StateSucceeded,
		"the repeat returned %s", answer.Say())
	c.StaysQuiet(i, before, "the repeat of an operation that had succeeded")
	again := c.Status(d.OperationID)
	c.Require(again.State == adapter.StateSucceeded, "the operation is %q after the repeat", again.State)
}

func dispatchRepeat(c *trial.Check) {
	i, d, rule := c.Middle()
	c.Accept(d)
	c.Pause(c.Bounds.Settle)
	rule.Lift()
	c.Succeed(d.OperationID)
	c.ActsOnce(i)
}

// dispatchConcurrent sends one dispatch from eight callers at once: all are answered, and the work
// is done once.
func dispatchConcurrent(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	c.Opened = append(c.Opened, d.OperationID)
	const callers = 8
	l := trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(d)}
	answers, failures := make([]trial.Reply, callers), make([]error, callers)
	rule := c.Hold(i, d, 0) // what comes after the end is a repeat, which is another clause
	var calls sync.WaitGroup
	for n := range callers {
		calls.Go(func() { answers[n], failures[n] = c.Try(l) })
	}
	calls.Wait()
	rule.Lift()
	for n := range callers {
		c.Require(failures[n] == nil, "one of %d dispatches at the same time was not answered: %v", callers,
			failures[n])
		c.Taken(d, answers[n])
	}
	c.Succeed(d.OperationID)
	c.Pause(c.Bounds.Settle)
	c.ActsOnce(i)
}

// dispatchNotSpecification repeats a dispatch with changes in the fields that are not part of the
// specification: none of them makes it another operation.
func dispatchNotSpecification(c *trial.Check) {
	i, d, rule := c.Middle()
	for _, one := range []struct {
		what   string
		change func(*adapter.Dispatch)
	}{
		{"another token", func(d *adapter.Dispatch) { d.Platform = c.Grant(i, d.OperationID).Access() }},
		{"another deadline", func(d *adapter.Dispatch) { d.Deadline = d.Deadline.Add(time.Minute) }},
		{"another trace", func(d *adapter.Dispatch) {
			d.CorrelationID, d.Traceparent = "other", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		}},
		{"another member status", eachMember(func(m *adapter.Member) { m.Status = "joining" })},
		{"a cordon", eachMember(func(m *adapter.Member) { m.Cordoned = true })},
		{"labels", eachMember(func(m *adapter.Member) { m.Labels = map[string]string{"zone": "a"} })},
		{"reachability", eachMember(func(m *adapter.Member) { reachable := true; m.Node.Reachable = &reachable })},
	} {
		other := d
		one.change(&other)
		answer := c.Put(other)
		c.Require(answer.Status == http.StatusOK || answer.Status == http.StatusAccepted,
			"a repeat with %s returned %s", one.what, answer.Say())
	}
	rule.Lift()
	c.Succeed(d.OperationID)
}

// eachMember returns a change of every member of a dispatch's copy.
func eachMember(change func(*adapter.Member)) func(*adapter.Dispatch) {
	return func(d *adapter.Dispatch) {
		d.Members = slices.Clone(d.Members)
		for n := range d.Members {
			change(&d.Members[n])
		}
	}
}

// dispatchCanonical repeats a dispatch in another spelling of its JSON: the comparison must be by
// content.
func dispatchCanonical(c *trial.Check) {
	_, d := c.Create()
	var loose map[string]any
	if err := json.Unmarshal(c.Encode(d), &loose); err != nil {
		c.NotRun("the suite could not decode its own dispatch: %v", err)
	}
	// A map is written with sorted keys, which is another order than the contract's.
	raw, err := json.MarshalIndent(loose, "", "   ")
	if err != nil {
		c.NotRun("the suite could not encode a dispatch: %v", err)
	}
	answer := c.Call(trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: raw})
	c.Require(answer.Status == http.StatusOK,
		"the same dispatch with its keys in another order returned %s", answer.Say())
}

// dispatchMismatch repeats an operation id with one changed field of the specification at a time.
func dispatchMismatch(c *trial.Check) {
	i, d := c.Create()
	before := i.Begun()
	for _, one := range []struct {
		what   string
		change func(*adapter.Dispatch)
	}{
		{"instance.name", func(d *adapter.Dispatch) { d.Instance.Name += "-other" }},
		{"instance.version", func(d *adapter.Dispatch) { d.Instance.Version += ".1" }},
		{"instance.components", func(d *adapter.Dispatch) {
			d.Instance.Components = slices.Clone(d.Instance.Components)
			d.Instance.Components[0].Count++
		}},
		{"members[0].node.id", func(d *adapter.Dispatch) {
			d.Members = slices.Clone(d.Members)
			d.Members[0].Node.ID = "nod_other"
		}},
		{"targets", func(d *adapter.Dispatch) { d.Targets = []string{d.Members[0].ID} }},
		{`change ({"conformance":true}; every name in it counts)`,
			func(d *adapter.Dispatch) { d.Change = json.RawMessage(`{"conformance":true}`) }},
		{"kind", func(d *adapter.Dispatch) { d.Kind = adapter.InstanceDecommission }},
	} {
		other := d
		one.change(&other)
		body := c.Refused("the same operation id with another "+one.what, c.Put(other), http.StatusConflict)
		c.Require(body.Code == adapter.CodeBodyMismatch,
			"the same operation id with another %s was refused with %s, not %s", one.what, body.Code,
			adapter.CodeBodyMismatch)
	}
	c.StaysQuiet(i, before, "refused dispatches")
	status := c.Status(d.OperationID)
	c.Require(status.State == adapter.StateSucceeded, "the operation is %q after refused dispatches", status.State)
}

// dispatchUnknownFields adds fields that a later version of the contract might send.
func dispatchUnknownFields(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	c.Opened = append(c.Opened, d.OperationID)
	var loose map[string]any
	if err := json.Unmarshal(c.Encode(d), &loose); err != nil {
		c.NotRun("the suite could not decode its own dispatch: %v", err)
	}
	loose["conformanceFuture"] = map[string]any{"anything": []int{1, 2}}
	for _, part := range []string{"instance", "platform"} {
		if object, ok := loose[part].(map[string]any); ok {
			object["conformanceFuture"] = "anything"
		}
	}
	answer := c.Call(trial.Letter{
		Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(loose),
	})
	c.Taken(d, answer)
	c.Succeed(d.OperationID)
}

// dispatchLostReply drops the connection of a dispatch before its answer, and dispatches again.
func dispatchLostReply(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	rule := c.Hold(i, d, 0)
	c.CutOff(
		trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: c.Encode(d)},
		rule.Caught(),
	)
	c.Pause(c.Bounds.Settle)
	c.Accept(d)
	rule.Lift()
	c.Succeed(d.OperationID)
	c.ActsOnce(i)
}
