package conformance

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// instance is one app instance of the suite's: what the platform knows of it.
type instance struct {
	suite   *suite
	as      adapter.Instance
	members []adapter.Member
	// all are the members it ever had, for clearing up.
	all []string
}

// newID makes an id as the platform's look.
func newID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// instance makes a new instance with the asked or described number of members; more of one
// component with extra.
func (c *check) instance(extra ...string) *instance {
	i := &instance{suite: c.suite, as: adapter.Instance{
		ID: newID("ins"), Name: fmt.Sprintf("trial-%d", c.number()), TenantID: "ten_conformance", ProjectID: "prj_conformance",
		App: c.app.Slug, Version: cmp.Or(c.options.Version, "1.0.0"), Config: c.config, Components: []adapter.ComponentCount{},
		RuntimeProfile: c.options.RuntimeProfile, Artifacts: c.options.Artifacts,
	}}
	for _, component := range c.app.Components {
		i.grow(component.Key, c.countOf(component, extra))
	}
	c.instances = append(c.instances, i)
	if len(i.members) == 0 {
		c.notRun("the app's defaults make an instance without members: say how many of which component")
	}
	return i
}

func (s *suite) number() int {
	s.serial++
	return s.serial
}

// countOf is how many members of a component a new instance has.
func (c *check) countOf(component adapter.Component, extra []string) int {
	count, asked := c.options.Members[component.Key]
	if !asked {
		count = max(component.Default, component.Min)
	}
	if slices.Contains(extra, component.Key) {
		count = min(max(count, component.Min+1), component.Max)
	}
	return count
}

// grow adds members of a component and returns them.
func (i *instance) grow(key string, count int) []adapter.Member {
	var added []adapter.Member
	for range count {
		member := adapter.Member{
			ID: newID("mem"), ComponentKey: key, Index: i.nextIndex(key), Status: "pending", Node: i.suite.node(len(i.all)),
		}
		i.members, i.all = append(i.members, member), append(i.all, member.ID)
		added = append(added, member)
	}
	i.recount()
	return added
}

// drop takes a member out.
func (i *instance) drop(id string) {
	i.members = slices.DeleteFunc(slices.Clone(i.members), func(m adapter.Member) bool { return m.ID == id })
	i.recount()
}

func (i *instance) nextIndex(key string) int {
	next := 0
	for _, member := range i.members {
		if member.ComponentKey == key {
			next = max(next, member.Index+1)
		}
	}
	return next
}

// recount writes the desired counts anew.
func (i *instance) recount() {
	counts := []adapter.ComponentCount{}
	for _, component := range i.suite.app.Components {
		one := adapter.ComponentCount{Key: component.Key}
		for _, member := range i.members {
			if member.ComponentKey == component.Key {
				one.Count++
			}
		}
		counts = append(counts, one)
	}
	i.as.Components = counts
}

// node is the node that the n-th member lies on: this machine under several names and addresses.
func (s *suite) node(n int) adapter.Node {
	number := n%cmp.Or(s.options.Nodes, 3) + 1
	return adapter.Node{
		ID: fmt.Sprintf("nod_%d", number), Name: fmt.Sprintf("node-%d", number), Address: cmp.Or(s.options.Address, fmt.Sprintf("127.0.0.%d", number)),
		SealingKey: s.platform.SealingKey(), AllocationID: fmt.Sprintf("alc_%d", number), Shape: "baremetal", CPUs: 2, MemoryMiB: 2048,
	}
}

// dispatch is the first dispatch of a new operation with a token of its own.
func (c *check) dispatch(i *instance, kind adapter.Kind, targets ...string) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: newID("op"), Kind: kind, Attempt: 1, Deadline: time.Now().Add(c.bounds.Operation).UTC().Truncate(time.Millisecond),
		CorrelationID: "conformance", Instance: i.as, Members: slices.Clone(i.members), Targets: targets, Change: json.RawMessage(`{}`),
	}
	d.Instance.Components = slices.Clone(i.as.Components)
	d.Platform = c.grant(i, d.OperationID).Access()
	return d
}

// grant makes a token for an operation or call of the instance.
func (c *check) grant(i *instance, operation string) *standin.Grant {
	grant, err := c.platform.Grant(i.as.ID, operation, i.members)
	if err != nil {
		c.notRun("%v", err)
	}
	return grant
}

// create brings a new instance up and returns it with the dispatch that did it.
func (c *check) create(extra ...string) (*instance, adapter.Dispatch) {
	i := c.instance(extra...)
	d := c.dispatch(i, adapter.InstanceCreate)
	c.accept(d)
	c.succeed(d.OperationID)
	i.serving()
	return i, d
}

// serving marks all members as active, as the platform does when it was told so.
func (i *instance) serving() {
	for n := range i.members {
		i.members[n].Status = string(adapter.MemberActive)
	}
}

// shared is an instance that serves, for clauses that only look at it.
func (c *check) shared() *instance {
	if c.standing == nil {
		i, _ := c.create()
		c.suite.standing = i
	}
	return c.standing
}

// carry runs one operation of an instance that must succeed.
func (c *check) carry(i *instance, kind adapter.Kind, change any, targets ...string) adapter.Status {
	d := c.dispatch(i, kind, targets...)
	if change != nil {
		d.Change = c.encode(change)
	}
	c.accept(d)
	return c.succeed(d.OperationID)
}

// supports skips the clause unless the app describes the operation kind.
func (c *check) supports(kinds ...adapter.Kind) {
	for _, kind := range kinds {
		if !slices.Contains(c.app.Operations, kind) {
			c.skip("the app does not describe %s", kind)
		}
	}
}

// wipe deletes what the instance has on its nodes behind the adapter's back.
func (i *instance) wipe() {
	for _, id := range i.all {
		_ = i.suite.platform.Wipe(id) // what cannot be wiped is wiped with the directory
	}
}

// observe asks how the instance is.
func (c *check) observe(i *instance) (adapter.Observation, reply) {
	answer := c.call(letter{method: http.MethodGet, target: adapter.InstancePath(i.as.ID), access: c.grant(i, newID("call")).Token()})
	var seen adapter.Observation
	if answer.status == http.StatusOK {
		c.decode(answer, "the observation", &seen)
	}
	return seen, answer
}

// hold holds back what the operation does after so many acting node tasks.
func (c *check) hold(i *instance, d adapter.Dispatch, skip int) *standin.Rule {
	return c.rule(&standin.Rule{Instance: i.as.ID, Operation: d.OperationID, Fate: standin.Hold, Skip: skip})
}

func (c *check) rule(r *standin.Rule) *standin.Rule {
	c.rules = append(c.rules, c.platform.Add(r))
	return r
}

// caught waits until the rule holds something back. An operation that ends before asks for too
// little to be held, and the clause does not apply.
func (c *check) caught(r *standin.Rule, id string) {
	for {
		select {
		case <-r.Caught():
			return
		default:
		}
		if status := c.status(id); status.State.Terminal() {
			c.skip("the operation ended (%s) before any node task of it could be held back", status.State)
		}
		select {
		case <-r.Caught():
			return
		case <-c.ctx.Done():
			c.fail("the operation neither asked for a node task nor ended in %s", c.bounds.Clause)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// middle begins a create and returns when it is held in its middle.
func (c *check) middle() (*instance, adapter.Dispatch, *standin.Rule) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	rule := c.hold(i, d, c.baseline.total()/2)
	c.accept(d)
	c.caught(rule, d.OperationID)
	return i, d, rule
}
