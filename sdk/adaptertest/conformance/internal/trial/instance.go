package trial

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

// Fresh returns a new instance with a dispatch that has not been sent.
func (c *Check) Fresh() (*Instance, adapter.Dispatch) {
	i := c.NewInstance()
	return i, c.Dispatch(i, adapter.InstanceCreate)
}

// Instance is one app instance with what the platform knows of it.
type Instance struct {
	Suite   *Suite
	Wire    adapter.Instance
	Members []adapter.Member
	// All are the ids of every member it ever had, for clearing up.
	All []string
}

// NewID returns an id in the form of the platform's.
func NewID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// NewInstance returns a new instance with the configured or described number of members, and with
// one more than the least of each component in extra, or as many more as it is named there.
func (c *Check) NewInstance(extra ...string) *Instance {
	i := &Instance{Suite: c.Suite, Wire: adapter.Instance{
		ID: NewID("ins"), Name: fmt.Sprintf("trial-%d", c.number()),
		TenantID: "ten_conformance", ProjectID: "prj_conformance",
		App: c.App.Slug, Version: cmp.Or(c.Options.Version, "1.0.0"), Config: c.config,
		Components:     []adapter.ComponentCount{},
		RuntimeProfile: c.Options.RuntimeProfile, Artifacts: c.Options.Artifacts,
	}}
	for _, component := range c.App.Components {
		i.Grow(component.Key, c.CountOf(component, extra))
	}
	c.instances = append(c.instances, i)
	if len(i.Members) == 0 {
		c.NotRun("the app's defaults create an instance without members: give the number of members of a component")
	}
	return i
}

func (s *Suite) number() int {
	s.serial++
	return s.serial
}

// CountOf returns the number of members of a component in a new instance.
func (c *Check) CountOf(component adapter.Component, extra []string) int {
	count, asked := c.Options.Members[component.Key]
	if !asked {
		count = max(component.Default, component.Min)
	}
	more := 0
	for _, key := range extra {
		if key == component.Key {
			more++
		}
	}
	if more > 0 {
		count = min(max(count, component.Min+more), component.Max)
	}
	return count
}

// Grow adds members of a component and returns them.
func (i *Instance) Grow(key string, count int) []adapter.Member {
	var added []adapter.Member
	for range count {
		member := adapter.Member{
			ID: NewID("mem"), ComponentKey: key, Index: i.NextIndex(key), Status: "pending",
			Node: i.Suite.node(len(i.All)),
		}
		i.Members, i.All = append(i.Members, member), append(i.All, member.ID)
		added = append(added, member)
	}
	i.recount()
	return added
}

// Drop deletes a member from the list.
func (i *Instance) Drop(id string) {
	i.Members = slices.DeleteFunc(slices.Clone(i.Members), func(m adapter.Member) bool { return m.ID == id })
	i.recount()
}

// NextIndex returns the index of the next member of a component.
func (i *Instance) NextIndex(key string) int {
	next := 0
	for _, member := range i.Members {
		if member.ComponentKey == key {
			next = max(next, member.Index+1)
		}
	}
	return next
}

// recount sets the desired counts to the present members.
func (i *Instance) recount() {
	counts := []adapter.ComponentCount{}
	for _, component := range i.Suite.App.Components {
		one := adapter.ComponentCount{Key: component.Key}
		for _, member := range i.Members {
			if member.ComponentKey == component.Key {
				one.Count++
			}
		}
		counts = append(counts, one)
	}
	i.Wire.Components = counts
}

// node returns the node of the n-th member: this machine under several names and addresses.
func (s *Suite) node(n int) adapter.Node {
	number := n%cmp.Or(s.Options.Nodes, 3) + 1
	return adapter.Node{
		ID: fmt.Sprintf("nod_%d", number), Name: fmt.Sprintf("node-%d", number),
		Address:    cmp.Or(s.Options.Address, fmt.Sprintf("127.0.0.%d", number)),
		SealingKey: s.Platform.SealingKey(), AllocationID: fmt.Sprintf("alc_%d", number),
		Shape: "baremetal", CPUs: 2, MemoryMiB: 2048,
	}
}

// Dispatch returns the first dispatch of a new operation, with a token of its own.
func (c *Check) Dispatch(i *Instance, kind adapter.Kind, targets ...string) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: NewID("op"), Kind: kind, Attempt: 1,
		Deadline:      time.Now().Add(c.Bounds.Operation).UTC().Truncate(time.Millisecond),
		CorrelationID: "conformance", Instance: i.Wire, Members: slices.Clone(i.Members),
		Targets: targets, Change: json.RawMessage(`{}`),
	}
	d.Instance.Components = slices.Clone(i.Wire.Components)
	d.Platform = c.Grant(i, d.OperationID).Access()
	return d
}

// Grant returns a token for an operation or call of the instance.
func (c *Check) Grant(i *Instance, operation string) *standin.Grant {
	grant, err := c.Platform.Grant(i.Wire.ID, operation, i.Members)
	if err != nil {
		c.NotRun("%v", err)
	}
	return grant
}

// Create brings a new instance up and returns it with its dispatch.
func (c *Check) Create(extra ...string) (*Instance, adapter.Dispatch) {
	i := c.NewInstance(extra...)
	d := c.Dispatch(i, adapter.InstanceCreate)
	c.Accept(d)
	c.Succeed(d.OperationID)
	i.Serving()
	return i, d
}

// Serving marks all members as active, as the platform does when they are reported so.
func (i *Instance) Serving() {
	for n := range i.Members {
		i.Members[n].Status = string(adapter.MemberActive)
	}
}

// Shared returns an instance that serves, for clauses that only look at it.
func (c *Check) Shared() *Instance {
	if c.Standing == nil {
		i, _ := c.Create()
		c.Suite.Standing = i
	}
	return c.Standing
}

// Carry runs one operation of an instance that must succeed.
func (c *Check) Carry(i *Instance, kind adapter.Kind, change any, targets ...string) adapter.Status {
	d := c.Dispatch(i, kind, targets...)
	if change != nil {
		d.Change = c.Encode(change)
	}
	c.Accept(d)
	return c.Succeed(d.OperationID)
}

// Supports skips the clause unless the app describes the operation kind.
func (c *Check) Supports(kinds ...adapter.Kind) {
	for _, kind := range kinds {
		if !slices.Contains(c.App.Operations, kind) {
			c.Skip("the app does not describe %s", kind)
		}
	}
}

// wipe deletes what the instance has on its nodes behind the adapter's back.
func (i *Instance) wipe() {
	for _, id := range i.All {
		_ = i.Suite.Platform.Wipe(id) // what cannot be wiped is wiped with the directory
	}
}

// Observe requests an observation of the instance.
func (c *Check) Observe(i *Instance) (adapter.Observation, Reply) {
	answer := c.Call(Letter{
		Method: http.MethodGet, Target: adapter.InstancePath(i.Wire.ID), Access: c.Grant(i, NewID("call")).Token(),
	})
	var seen adapter.Observation
	if answer.Status == http.StatusOK {
		c.Decode(answer, "the observation", &seen)
	}
	return seen, answer
}

// Act calls an action of the instance.
func (c *Check) Act(i *Instance, name, key string, input json.RawMessage) Reply {
	body := adapter.ActionRequest{
		Input: input, IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_conformance", Kind: "user"},
		Instance: i.Wire, Members: i.Members, Platform: c.Grant(i, NewID("call")).Access(),
	}
	answer := c.Call(Letter{
		Method: http.MethodPost, Target: adapter.ActionPath(i.Wire.ID, name), Body: c.Encode(body),
		Patience: c.Bounds.Operation,
	})
	c.Acted[name] = c.Acted[name] || answer.Status == http.StatusOK
	return answer
}

// Excused reports whether an answer refuses an action that the app may refuse, with an error that says why.
func (c *Check) Excused(name string, answer Reply) bool {
	if answer.Status != http.StatusUnprocessableEntity || !slices.Contains(c.Options.Refusable, name) {
		return false
	}
	_, ok := answer.fault()
	return ok
}

// Set changes what the platform knows of a member.
func (i *Instance) Set(id string, change func(*adapter.Member)) {
	for n := range i.Members {
		if i.Members[n].ID == id {
			change(&i.Members[n])
		}
	}
}
