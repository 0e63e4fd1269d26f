package conformance

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inTenancy = "Tenants"

func tenancyClauses() []Clause {
	one := func(id, rule, fix string, run func(*check), needs ...string) Clause {
		return Clause{ID: "tenancy." + id, Section: inTenancy, Rule: rule, Needs: append([]string{created}, needs...), Fix: fix, run: run}
	}
	return []Clause{
		one("audience", "a request token for another adapter opens no instance: neither observation, usage nor action, and nothing is done",
			"verify aud on every route, not on dispatches alone", tenancyAudience),
		one("instance", "a request token made for one tenant's instance does not open another tenant's",
			"compare htu as a whole: the instance's id is part of it", tenancyInstance),
		one("operation", "a request token made for one tenant's operation neither shows nor cancels another tenant's",
			"compare htu as a whole: the operation's id is part of it", tenancyOperation),
		one("names", "two tenants' instances of the same name stand apart",
			"know instances by id, never by name", tenancyNames),
		one("token", "with another tenant's platform token nothing is done to an instance's members, and no token from before is used in its place",
			"use the platform token that came with the request, and no other one when it is refused", tenancyToken, "tenancy.names"),
		one("keys", "the same idempotency key on two tenants' instances is two actions",
			"keep keys of actions by instance", tenancyKeys, "tenancy.names"),
		one("answers", "what is answered of one tenant's instance holds nothing of another tenant's",
			"answer from what belongs to the instance that was asked for, also in messages", tenancyAnswers, "tenancy.names"),
	}
}

// neighbours are an instance that serves, and one of the same name that another tenant has.
func (c *check) neighbours() (ours, theirs *instance) {
	ours = c.shared()
	if c.neighbour == nil {
		i := c.instance()
		i.as.TenantID, i.as.ProjectID, i.as.Name = "ten_neighbour", "prj_neighbour", ours.as.Name
		d := c.dispatch(i, adapter.InstanceCreate)
		c.accept(d)
		c.succeed(d.OperationID)
		i.serving()
		c.suite.neighbour, c.suite.neighbourBegan = i, d.OperationID
	}
	return ours, c.neighbour
}

// strangeToken sends a request with a token that was made for another target, or another adapter, and requires that it
// is refused.
func (c *check) strangeToken(what, audience, madeFor string, l letter) {
	token, err := c.platform.Sign(audience, l.method, madeFor, l.body)
	if err != nil {
		c.notRun("the suite could not make the token: %v", err)
	}
	l.token = token
	c.refused(what, c.call(l), http.StatusUnauthorized)
}

// untroubled requires that no node task was asked for since the ledgers were so long.
func (c *check) untroubled(before int, after string, instances ...*instance) {
	c.unless(c.asked(instances...) == before, "%s, and yet node tasks were carried out", after)
}

// asked is how many node tasks were taken for the instances so far.
func (c *check) asked(instances ...*instance) int {
	n := 0
	for _, i := range instances {
		n += len(c.platform.Ledger(i.as.ID))
	}
	return n
}

// actionBody is a call of the first action that changes something and for which an input can be made.
func (c *check) actionBody(i *instance, key, token string) (name string, body []byte, ok bool) {
	for _, action := range c.app.Actions {
		input, has := c.input(action)
		if action.Risk == adapter.RiskRead || !has {
			continue
		}
		return action.Name, c.encode(adapter.ActionRequest{
			Input: input, IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_conformance", Kind: "user"}, Instance: i.as, Members: i.members,
			Platform: adapter.Platform{GraphQLURL: c.grant(i, newID("call")).Access().GraphQLURL, Token: token},
		}), true
	}
	return "", nil, false
}

func tenancyAudience(c *check) {
	ours, _ := c.neighbours()
	before, token := c.asked(ours), c.grant(ours, newID("call")).Token()
	letters := []letter{
		{method: http.MethodGet, target: adapter.InstancePath(ours.as.ID), access: token},
		{method: http.MethodGet, target: adapter.UsagePath(ours.as.ID, ""), access: token},
	}
	if name, body, ok := c.actionBody(ours, newID("key"), token); ok {
		letters = append(letters, letter{method: http.MethodPost, target: adapter.ActionPath(ours.as.ID, name), body: body})
	}
	for _, l := range letters {
		c.strangeToken(l.method+" "+l.target+" with a token for another adapter", "another-adapter", l.target, l)
	}
	c.untroubled(before, "every request was refused", ours)
}

func tenancyInstance(c *check) {
	ours, theirs := c.neighbours()
	before := c.asked(ours, theirs)
	for _, path := range []func(string) string{adapter.InstancePath, func(id string) string { return adapter.UsagePath(id, "") }} {
		l := letter{method: http.MethodGet, target: path(theirs.as.ID), access: c.grant(ours, newID("call")).Token()}
		c.strangeToken("another tenant's instance with a token made for one's own", c.options.Name, path(ours.as.ID), l)
	}
	c.untroubled(before, "every request was refused", ours, theirs)
}

func tenancyOperation(c *check) {
	ours, theirs := c.neighbours()
	before, own := c.asked(ours, theirs), newID("op")
	c.strangeToken("the status of another tenant's operation with a token made for one's own", c.options.Name, adapter.OperationPath(own),
		letter{method: http.MethodGet, target: adapter.OperationPath(c.neighbourBegan)})
	c.strangeToken("the cancel of another tenant's operation with a token made for one's own", c.options.Name, adapter.CancelPath(own),
		letter{method: http.MethodPost, target: adapter.CancelPath(c.neighbourBegan), body: c.encode(adapter.CancelRequest{Attempt: 1})})
	status := c.status(c.neighbourBegan)
	c.unless(status.State == adapter.StateSucceeded, "the other tenant's operation is %q after a cancel that was refused", status.State)
	c.untroubled(before, "every request was refused", ours, theirs)
}

// tenancyToken asks with a good request and the platform token of another tenant's instance. Whatever is answered, the
// platform lets nothing of it pass; an adapter that helps itself to a token it has kept is seen by what it did.
func tenancyToken(c *check) {
	ours, theirs := c.neighbours()
	before, token := c.asked(ours, theirs), c.grant(ours, newID("call")).Token()
	c.call(letter{method: http.MethodGet, target: adapter.InstancePath(theirs.as.ID), access: token, patience: c.bounds.Operation})
	c.untroubled(before, "another tenant's instance was observed with a platform token that is not for it", ours, theirs)
	if name, body, ok := c.actionBody(theirs, newID("key"), token); ok {
		c.call(letter{method: http.MethodPost, target: adapter.ActionPath(theirs.as.ID, name), body: body, patience: c.bounds.Operation})
		c.untroubled(before, "an action on another tenant's instance came with a platform token that is not for it", ours, theirs)
	}
}

func tenancyNames(c *check) {
	ours, theirs := c.neighbours()
	for _, i := range []*instance{ours, theirs} {
		seen, answer := c.observe(i)
		c.unless(answer.status == http.StatusOK && seen.InstanceID == i.as.ID, "the observation of one of two instances of a name was answered %s", answer.say())
		for _, member := range seen.Members {
			own := slices.ContainsFunc(i.members, func(m adapter.Member) bool { return m.ID == member.ID })
			c.unless(own, "the observation of one of two instances of a name speaks of member %s, which is not its own", member.ID)
		}
	}
}

func tenancyKeys(c *check) {
	ours, theirs := c.neighbours()
	key := newID("key")
	for _, i := range []*instance{ours, theirs} {
		other := ours
		if i == ours {
			other = theirs
		}
		before := c.asked(other)
		name, body, ok := c.actionBody(i, key, c.grant(i, newID("call")).Token())
		if !ok {
			c.skip("the app describes no action that changes something and whose input the suite can make")
		}
		own := c.asked(i)
		answer := c.call(letter{method: http.MethodPost, target: adapter.ActionPath(i.as.ID, name), body: body, patience: c.bounds.Operation})
		c.unless(answer.status == http.StatusOK, "action %s with a key that another tenant has used was answered %s", name, answer.say())
		c.untroubled(before, "the action was for one tenant's instance, not for the other's", other)
		if i == ours {
			c.suite.neighbourTasks = c.asked(i) - own
			continue
		}
		c.unless(c.neighbourTasks == 0 || c.asked(i) > own, "action %s with a key that another tenant has used was answered, and nothing was done", name)
	}
}

func tenancyAnswers(c *check) {
	ours, theirs := c.neighbours()
	strange := append([]string{theirs.as.ID, theirs.as.TenantID, theirs.as.ProjectID, c.neighbourBegan}, theirs.all...)
	token := c.grant(ours, newID("call")).Token()
	for _, l := range []letter{
		{method: http.MethodGet, target: adapter.InstancePath(ours.as.ID), access: token, patience: c.bounds.Operation},
		{method: http.MethodGet, target: adapter.UsagePath(ours.as.ID, ""), access: token},
		{method: http.MethodGet, target: adapter.InstancePath(newID("ins")), access: token},
	} {
		answer := c.call(l)
		for _, word := range strange {
			c.unless(!strings.Contains(string(answer.body), word), "the answer of %s %s holds %s, which is another tenant's", l.method, l.target, word)
		}
	}
}
