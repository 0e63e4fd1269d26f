package calls

import (
	"net/http"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Observe returns the clauses on observations.
func Observe() []trial.Clause {
	return []trial.Clause{
		{ID: "observe.valid", Section: trial.InObserve, Needs: []string{trial.Created}, Run: observeValid,
			Rule: "an observation has a health, the present time, and no member of another instance",
			Fix:  "answer Observation as in the OpenAPI document"},
		{ID: "observe.unknown", Section: trial.InObserve, Needs: []string{trial.Created}, Run: observeUnknown,
			Rule: "an observation of an instance that was never dispatched returns 404",
			Fix:  "answer 404 with {code, message}"},
		{ID: "observe.honest", Section: trial.InObserve, Needs: []string{"observe.valid"}, Run: observeHonest,
			Rule: "a member whose node does not answer is never reported healthy",
			Fix:  "report a member healthy only after a node task has shown it; without an answer it is unknown"},
		{ID: "observe.patient", Section: trial.InObserve, Needs: []string{"observe.valid"}, Run: observePatient,
			Rule: "a member whose node does not answer is not reported failed, nor its instance lost",
			Fix: "report the status failed only of a member that was observed dead: no answer means unknown, and the " +
				"platform itself counts how long a node does not answer"},
		{ID: "observe.harmless", Section: trial.InObserve, Needs: []string{"observe.valid"}, Run: observeHarmless,
			Rule: "an observation changes nothing",
			Fix:  "observe with PROBE, INSPECT_PROCESS or a RUN that only reads; never repair while observing"},
	}
}

// observeValid checks that an observation is of this instance and its members, and of now.
func observeValid(c *trial.Check) {
	i := c.Shared()
	seen, answer := c.Observe(i)
	c.Require(answer.Status == http.StatusOK, "the observation returned %s", answer.Say())
	c.Require(seen.InstanceID == i.Wire.ID, "instanceId is %q", seen.InstanceID)
	c.Require(seen.Health.Valid(), "health is %q", seen.Health)
	age := time.Since(seen.ObservedAt)
	c.Shape(answer, "Observation")
	c.Require(age > -5*time.Minute && age < 5*time.Minute, "observedAt is %s, which is not now", seen.ObservedAt)
	for n, member := range seen.Members {
		known := slices.ContainsFunc(i.Members, func(m adapter.Member) bool { return m.ID == member.ID })
		c.Require(known, "members[%d] is %q, which is not a member of the instance", n, member.ID)
		c.Require(member.Health.Valid(), "members[%d].health is %q", n, member.Health)
	}
}

func observeUnknown(c *trial.Check) {
	i := c.NewInstance()
	_, answer := c.Observe(i)
	c.Refused("an instance that was never dispatched", answer, http.StatusNotFound)
}

// observeHonest fails every node task of one member: an observation that calls this member healthy
// did not look. An adapter that refuses to observe is honest too.
func observeHonest(c *trial.Check) {
	unasked(c, func(seen adapter.MemberObservation) {
		c.Require(seen.Health != adapter.Healthy, "node tasks of %s fail, but it is reported healthy", seen.ID)
	})
}

// observePatient fails every node task of one member: an observation that calls it dead, or the instance lost, would
// have the platform replace what only a network hides.
func observePatient(c *trial.Check) {
	whole := unasked(c, func(seen adapter.MemberObservation) {
		c.Require(seen.Status != adapter.MemberFailed, "node tasks of %s fail, but it is reported failed", seen.ID)
	})
	c.Require(whole.Lost == nil, "node tasks of one member fail, but the instance is reported lost: %v", whole.Lost)
}

// unasked observes an instance of which one member does not answer, and returns what the adapter reports; check gets
// the report on that member. A refusal to observe reports nothing, and is right.
func unasked(c *trial.Check, check func(adapter.MemberObservation)) adapter.Observation {
	i, _ := c.Create()
	lost := i.Members[0].ID
	rule := c.Rule(&standin.Rule{Instance: i.Wire.ID, Member: lost, Fate: standin.Fail, Looks: true})
	seen, answer := c.Observe(i)
	if rule.Count() == 0 {
		c.Skip("an observation of this app requests no node task of that member")
	}
	if answer.Status != http.StatusOK {
		c.Refused(
			"an observation with a node that does not answer", answer, http.StatusUnprocessableEntity,
			http.StatusServiceUnavailable,
		)
		return adapter.Observation{}
	}
	for _, member := range seen.Members {
		if member.ID == lost {
			check(member)
		}
	}
	return seen
}

func observeHarmless(c *trial.Check) {
	i := c.Shared()
	before := len(i.Suite.Platform.Ledger(i.Wire.ID))
	c.Observe(i)
	for _, entry := range i.Suite.Platform.Ledger(i.Wire.ID)[before:] {
		changes := standin.Acts(entry.Kind) && entry.Kind != adapter.TaskRun
		c.Require(!changes, "the observation requested the node task %s on member %s", entry.Kind, entry.Member)
	}
}
