package conformance

import (
	"net/http"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const inObserve = "GET /v1/instances/{id}"

func observeClauses() []Clause {
	return []Clause{
		{ID: "observe.valid", Section: inObserve, Rule: "an observation has a health, a time that is now, and speaks of members of the instance only", Needs: []string{created},
			Fix: "answer Observation as in the OpenAPI document", run: observeValid},
		{ID: "observe.unknown", Section: inObserve, Rule: "an instance that was never dispatched is 404", Needs: []string{created},
			Fix: "answer 404 with {code, message}", run: observeUnknown},
		{ID: "observe.honest", Section: inObserve, Rule: "a member whose node cannot be asked is never called healthy", Needs: []string{"observe.valid"},
			Fix: "call a member healthy only when it was seen to be; a node that does not answer makes it unknown", run: observeHonest},
		{ID: "observe.harmless", Section: inObserve, Rule: "an observation changes nothing", Needs: []string{"observe.valid"},
			Fix: "look with PROBE, INSPECT_PROCESS or a RUN that only reads; never mend while observing", run: observeHarmless},
	}
}

func observeValid(c *check) {
	i := c.shared()
	seen, answer := c.observe(i)
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	c.unless(seen.InstanceID == i.as.ID, "instanceId is %q", seen.InstanceID)
	c.unless(seen.Health.Valid(), "health is %q", seen.Health)
	age := time.Since(seen.ObservedAt)
	c.unless(age > -5*time.Minute && age < 5*time.Minute, "observedAt is %s, which is not now", seen.ObservedAt)
	for n, member := range seen.Members {
		known := slices.ContainsFunc(i.members, func(m adapter.Member) bool { return m.ID == member.ID })
		c.unless(known, "members[%d] is %q, which is no member of the instance", n, member.ID)
		c.unless(member.Health.Valid(), "members[%d].health is %q", n, member.Health)
	}
}

func observeUnknown(c *check) {
	i := c.instance()
	_, answer := c.observe(i)
	c.refused("an instance that was never dispatched", answer, http.StatusNotFound)
}

func observeHonest(c *check) {
	i, _ := c.create()
	lost := i.members[0].ID
	rule := c.rule(&standin.Rule{Instance: i.as.ID, Member: lost, Fate: standin.Fail, Looks: true})
	seen, answer := c.observe(i)
	if rule.Count() == 0 {
		c.skip("an observation of this app asks for no node task of that member")
	}
	if answer.status != http.StatusOK {
		c.refused("an observation with a node that does not answer", answer, http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
		return
	}
	for _, member := range seen.Members {
		c.unless(member.ID != lost || member.Health != adapter.Healthy, "every node task of member %s fails, and it is called healthy", lost)
	}
}

func observeHarmless(c *check) {
	i := c.shared()
	before := len(i.suite.platform.Ledger(i.as.ID))
	c.observe(i)
	for _, entry := range i.suite.platform.Ledger(i.as.ID)[before:] {
		changes := standin.Acts(entry.Kind) && entry.Kind != adapter.TaskRun
		c.unless(!changes, "the observation asked for the node task %s on member %s", entry.Kind, entry.Member)
	}
}
