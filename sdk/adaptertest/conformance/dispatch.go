package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inDispatch = "PUT /v1/operations/{id}"

const inIdempotency = "PUT /v1/operations/{id}, Idempotency"

func dispatchClauses() []Clause {
	needs := []string{created}
	return []Clause{
		{ID: created, Section: inDispatch, Rule: "a create is accepted with 202 and comes to succeeded with every member active",
			Fix: "the members' states in the status and the error, if there is one, say where it stopped; the adapter's log says more", run: dispatchCompletes},
		{ID: "dispatch.idempotent", Section: inIdempotency, Rule: "a repeat of an operation that has ended is answered 200 with how it ended, and nothing is done again", Needs: needs,
			Fix: "keep ended operations by id and answer a repeat from what was kept", run: dispatchIdempotent},
		{ID: "dispatch.repeat", Section: inIdempotency, Rule: "a repeat of an operation under way is the same operation, and nothing is done twice", Needs: needs,
			Fix: "look the id up before you begin; one operation has one run", run: dispatchRepeat},
		{ID: "dispatch.concurrent", Section: inIdempotency, Rule: "many dispatches of one operation at the same time are one operation", Needs: needs,
			Fix: "make looking up and beginning one step, under a lock or a unique key", run: dispatchConcurrent},
		{ID: "dispatch.not_specification", Section: inIdempotency, Rule: "token, deadline, trace, force, and a member's status, cordon, labels and reachability are no part of the specification", Needs: needs,
			Fix: "compare operationId, kind, instance, members (without what moves), targets and change, and nothing else", run: dispatchNotSpecification},
		{ID: "dispatch.canonical", Section: inIdempotency, Rule: "the order of keys and white space are no part of the specification", Needs: needs,
			Fix: "compare parsed values, or hash them with sorted keys", run: dispatchCanonical},
		{ID: "dispatch.mismatch", Section: inIdempotency, Rule: "the same id with another specification is refused with 409 BODY_MISMATCH", Needs: needs,
			Fix: "keep a hash of the specification beside the operation and compare it", run: dispatchMismatch},
		{ID: "dispatch.unknown_fields", Section: "Compatibility", Rule: "fields that the adapter does not know are ignored", Needs: needs,
			Fix: "do not refuse unknown fields: a newer platform may send them", run: dispatchUnknownFields},
		{ID: "dispatch.lost_reply", Section: inIdempotency, Rule: "a dispatch whose reply was lost goes on, and its repeat is the same operation", Needs: needs,
			Fix: "do not tie the operation to the request that began it: a broken connection is no cancel", run: dispatchLostReply},
	}
}

func dispatchCompletes(c *check) {
	c.supports(adapter.InstanceCreate)
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	c.opened = append(c.opened, d.OperationID)
	answer := c.put(d)
	c.unless(answer.status == http.StatusAccepted, "a new operation ought to be answered 202, and was answered %s", answer.say())
	first := c.taken(d, answer)
	c.unless(first.State.Valid() && first.Attempt == d.Attempt, "the status says state %q and attempt %d", first.State, first.Attempt)
	status := c.succeed(d.OperationID)
	c.unless(status.Percent >= 0 && status.Percent <= 100, "percent is %d", status.Percent)
	for _, member := range i.members {
		at := slices.IndexFunc(status.Members, func(u adapter.MemberUpdate) bool { return u.ID == member.ID })
		c.unless(at >= 0, "the status says nothing of member %s (%s %d)", member.ID, member.ComponentKey, member.Index)
		c.unless(status.Members[at].Status == adapter.MemberActive, "member %s is %q after a create that succeeded", member.ID, status.Members[at].Status)
	}
	i.serving()
	c.suite.standing, c.suite.baseline = i, i.effectsOf(d.OperationID)
}

func dispatchIdempotent(c *check) {
	i, d := c.create()
	before := i.begun()
	answer := c.put(d)
	status := c.taken(d, answer)
	c.unless(answer.status == http.StatusOK && status.State == adapter.StateSucceeded, "the repeat was answered %s", answer.say())
	c.quiet(i, before, "the repeat of an operation that had succeeded")
	again := c.status(d.OperationID)
	c.unless(again.State == adapter.StateSucceeded, "the operation is %q after the repeat", again.State)
}

func dispatchRepeat(c *check) {
	i, d, rule := c.middle()
	c.accept(d)
	c.pause(c.bounds.Settle)
	rule.Lift()
	c.succeed(d.OperationID)
	c.once(i)
}

func dispatchConcurrent(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	c.opened = append(c.opened, d.OperationID)
	const callers = 8
	l := letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(d)}
	answers, failures := make([]reply, callers), make([]error, callers)
	rule := c.hold(i, d, 0) // what comes after the end is a repeat, which is another clause
	var calls sync.WaitGroup
	for n := range callers {
		calls.Go(func() { answers[n], failures[n] = c.try(l) })
	}
	calls.Wait()
	rule.Lift()
	for n := range callers {
		c.unless(failures[n] == nil, "one of %d dispatches at the same time was not answered: %v", callers, failures[n])
		c.taken(d, answers[n])
	}
	c.succeed(d.OperationID)
	c.pause(c.bounds.Settle)
	c.once(i)
}

func dispatchNotSpecification(c *check) {
	i, d, rule := c.middle()
	for _, one := range []struct {
		what   string
		change func(*adapter.Dispatch)
	}{
		{"another token", func(d *adapter.Dispatch) { d.Platform = c.grant(i, d.OperationID).Access() }},
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
		answer := c.put(other)
		c.unless(answer.status == http.StatusOK || answer.status == http.StatusAccepted, "a repeat with %s was answered %s", one.what, answer.say())
	}
	rule.Lift()
	c.succeed(d.OperationID)
}

// eachMember changes every member of a copy of the dispatch.
func eachMember(change func(*adapter.Member)) func(*adapter.Dispatch) {
	return func(d *adapter.Dispatch) {
		d.Members = slices.Clone(d.Members)
		for n := range d.Members {
			change(&d.Members[n])
		}
	}
}

func dispatchCanonical(c *check) {
	_, d := c.create()
	var loose map[string]any
	if err := json.Unmarshal(c.encode(d), &loose); err != nil {
		c.notRun("the suite could not decode its own dispatch: %v", err)
	}
	// A map is written with sorted keys, which is another order than the contract's.
	raw, err := json.MarshalIndent(loose, "", "   ")
	if err != nil {
		c.notRun("the suite could not encode a dispatch: %v", err)
	}
	answer := c.call(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: raw})
	c.unless(answer.status == http.StatusOK, "the same dispatch with its keys in another order was answered %s", answer.say())
}

func dispatchMismatch(c *check) {
	i, d := c.create()
	before := i.begun()
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
		{"members[0].node.id", func(d *adapter.Dispatch) { d.Members = slices.Clone(d.Members); d.Members[0].Node.ID = "nod_other" }},
		{"targets", func(d *adapter.Dispatch) { d.Targets = []string{d.Members[0].ID} }},
		{"change", func(d *adapter.Dispatch) { d.Change = json.RawMessage(`{"conformance":true}`) }},
		{"kind", func(d *adapter.Dispatch) { d.Kind = adapter.InstanceDecommission }},
	} {
		other := d
		one.change(&other)
		body := c.refused("the same operation id with another "+one.what, c.put(other), http.StatusConflict)
		c.unless(body.Code == adapter.CodeBodyMismatch, "the same operation id with another %s was refused with %s, not %s", one.what, body.Code, adapter.CodeBodyMismatch)
	}
	c.quiet(i, before, "refused dispatches")
	status := c.status(d.OperationID)
	c.unless(status.State == adapter.StateSucceeded, "the operation is %q after refused dispatches", status.State)
}

func dispatchUnknownFields(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	c.opened = append(c.opened, d.OperationID)
	var loose map[string]any
	if err := json.Unmarshal(c.encode(d), &loose); err != nil {
		c.notRun("the suite could not decode its own dispatch: %v", err)
	}
	loose["conformanceFuture"] = map[string]any{"anything": []int{1, 2}}
	for _, part := range []string{"instance", "platform"} {
		if object, ok := loose[part].(map[string]any); ok {
			object["conformanceFuture"] = "anything"
		}
	}
	answer := c.call(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(loose)})
	c.taken(d, answer)
	c.succeed(d.OperationID)
}

func dispatchLostReply(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	rule := c.hold(i, d, 0)
	c.cutOff(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: c.encode(d)}, rule.Caught())
	c.pause(c.bounds.Settle)
	c.accept(d)
	rule.Lift()
	c.succeed(d.OperationID)
	c.once(i)
}

// cutOff sends a request whole and drops the connection without reading a word of the answer, once
// the adapter has begun or at the latest when things have settled.
func (c *check) cutOff(l letter, begun <-chan struct{}) {
	req, err := c.request(c.ctx, l)
	if err != nil {
		c.notRun("%v", err)
	}
	at, err := url.Parse(c.url)
	if err != nil || at.Scheme != "http" {
		c.notRun("the connection can be cut only of a plain http adapter")
	}
	port := at.Port()
	if port == "" {
		port = "80"
	}
	conn, err := (&net.Dialer{}).DialContext(c.ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	c.unless(err == nil, "no connection: %v", err)
	defer conn.Close()
	writer := bufio.NewWriter(conn)
	err = req.Write(writer)
	if err == nil {
		err = writer.Flush()
	}
	c.unless(err == nil, "the request could not be sent: %v", err)
	select {
	case <-begun:
	case <-time.After(c.bounds.Settle):
	case <-c.ctx.Done():
	}
	c.remember(l, reply{}, fmt.Errorf("the suite cut the connection"))
}
