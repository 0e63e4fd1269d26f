package instances

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inTenancy = "Tenants"

// Tenancy returns the clauses on what keeps tenants apart.
func Tenancy() []trial.Clause {
	one := func(id, rule, fix string, run func(*trial.Check), needs ...string) trial.Clause {
		return trial.Clause{
			ID: "tenancy." + id, Section: inTenancy, Needs: append([]string{trial.Created}, needs...), Run: run,
			Rule: rule, Fix: fix,
		}
	}
	return []trial.Clause{
		one("audience",
			"a request token for another adapter gives access to no instance: neither observation, usage nor action, "+
				"and nothing is done",
			"verify aud on every route, not on dispatches alone", tenancyAudience),
		one("instance", "a request token for one tenant's instance gives no access to another tenant's",
			"compare htu as a whole: the instance's id is part of it", tenancyInstance),
		one("operation", "a request token for one tenant's operation neither reads nor cancels another tenant's",
			"compare htu as a whole: the operation's id is part of it", tenancyOperation),
		one("names", "two tenants' instances of the same name are kept apart",
			"identify instances by id, never by name", tenancyNames),
		one(
			"token",
			"with another tenant's platform token nothing is done to an instance's members, "+
				"and no earlier token is used instead",
			"use the platform token that came with the request, and no other one when it is refused",
			tenancyToken,
			"tenancy.names",
		),
		one("keys", "the same idempotency key on two tenants' instances is two actions",
			"keep the idempotency keys of actions for each instance", tenancyKeys, "tenancy.names"),
		one("answers", "the answers about one tenant's instance contain nothing of another tenant's",
			"answer only with what belongs to the requested instance, messages too", tenancyAnswers, "tenancy.names"),
	}
}

// neighbours returns an instance that serves, and one of the same name of another tenant.
func neighbours(c *trial.Check) (ours, theirs *trial.Instance) {
	ours = c.Shared()
	if c.Neighbour == nil {
		i := c.NewInstance()
		i.Wire.TenantID, i.Wire.ProjectID, i.Wire.Name = "ten_neighbour", "prj_neighbour", ours.Wire.Name
		d := c.Dispatch(i, adapter.InstanceCreate)
		c.Accept(d)
		c.Succeed(d.OperationID)
		i.Serving()
		c.Suite.Neighbour, c.Suite.NeighbourBegan = i, d.OperationID
	}
	return ours, c.Neighbour
}

// strangeToken sends a request with a token for another target, or another adapter, and requires a
// refusal.
func strangeToken(c *trial.Check, what, audience, madeFor string, l trial.Letter) {
	token, err := c.Platform.Sign(audience, l.Method, madeFor, l.Body)
	if err != nil {
		c.NotRun("the suite could not create the token: %v", err)
	}
	l.Token = token
	c.Refused(what, c.Call(l), http.StatusUnauthorized)
}

// untroubled requires that no node task was requested since the ledgers had this length.
func untroubled(c *trial.Check, before int, after string, instances ...*trial.Instance) {
	c.Require(tasksOf(c, instances...) == before, "%s, but node tasks were carried out", after)
}

// tasksOf returns the number of node tasks that were accepted for the instances so far.
func tasksOf(c *trial.Check, instances ...*trial.Instance) int {
	n := 0
	for _, i := range instances {
		n += len(c.Platform.Ledger(i.Wire.ID))
	}
	return n
}

// actionBody returns a call of the first action that changes something and for which an input is
// known.
func actionBody(c *trial.Check, i *trial.Instance, key, token string) (name string, body []byte, ok bool) {
	for _, action := range c.App.Actions {
		input, has := c.Input(action)
		if action.Risk == adapter.RiskRead || !has {
			continue
		}
		return action.Name, c.Encode(adapter.ActionRequest{
			Input: input, IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_conformance", Kind: "user"},
			Instance: i.Wire, Members: i.Members,
			Platform: adapter.Platform{GraphQLURL: c.Grant(i, trial.NewID("call")).Access().GraphQLURL, Token: token},
		}), true
	}
	return "", nil, false
}

// tenancyAudience sends requests with tokens that the platform signed for another adapter.
func tenancyAudience(c *trial.Check) {
	ours, _ := neighbours(c)
	before, token := tasksOf(c, ours), c.Grant(ours, trial.NewID("call")).Token()
	letters := []trial.Letter{
		{Method: http.MethodGet, Target: adapter.InstancePath(ours.Wire.ID), Access: token},
		{Method: http.MethodGet, Target: adapter.UsagePath(ours.Wire.ID, ""), Access: token},
	}
	if name, body, ok := actionBody(c, ours, trial.NewID("key"), token); ok {
		letters = append(
			letters, trial.Letter{Method: http.MethodPost, Target: adapter.ActionPath(ours.Wire.ID, name), Body: body},
		)
	}
	for _, l := range letters {
		strangeToken(c, l.Method+" "+l.Target+" with a token for another adapter", "another-adapter", l.Target, l)
	}
	untroubled(c, before, "every request was refused", ours)
}

func tenancyInstance(c *trial.Check) {
	ours, theirs := neighbours(c)
	before := tasksOf(c, ours, theirs)
	usage := func(id string) string { return adapter.UsagePath(id, "") }
	for _, path := range []func(string) string{adapter.InstancePath, usage} {
		l := trial.Letter{
			Method: http.MethodGet, Target: path(theirs.Wire.ID), Access: c.Grant(ours, trial.NewID("call")).Token(),
		}
		strangeToken(c, "another tenant's instance with a token for one's own", c.Options.Name, path(ours.Wire.ID), l)
	}
	untroubled(c, before, "every request was refused", ours, theirs)
}

// tenancyOperation reads and cancels another tenant's operation with tokens for one's own.
func tenancyOperation(c *trial.Check) {
	ours, theirs := neighbours(c)
	before, own := tasksOf(c, ours, theirs), trial.NewID("op")
	strangeToken(
		c, "the status of another tenant's operation with a token for one's own", c.Options.Name,
		adapter.OperationPath(own), trial.Letter{Method: http.MethodGet,
			Target: adapter.OperationPath(c.NeighbourBegan)},
	)
	strangeToken(
		c,
		"the cancel of another tenant's operation with a token for one's own",
		c.Options.Name,
		adapter.CancelPath(own),
		trial.Letter{
			Method: http.MethodPost, Target: adapter.CancelPath(c.NeighbourBegan),
			Body: c.Encode(adapter.CancelRequest{Attempt: 1}),
		},
	)
	status := c.Status(c.NeighbourBegan)
	c.Require(status.State == adapter.StateSucceeded,
		"the other tenant's operation is %q after a cancel that was refused", status.State)
	untroubled(c, before, "every request was refused", ours, theirs)
}

// tenancyToken sends a good request with the platform token of another tenant's instance. Whatever
// the answer, the platform lets nothing of it pass; an adapter that uses a token it has kept is
// found by what it did.
func tenancyToken(c *trial.Check) {
	ours, theirs := neighbours(c)
	before, token := tasksOf(c, ours, theirs), c.Grant(ours, trial.NewID("call")).Token()
	c.Call(trial.Letter{
		Method: http.MethodGet, Target: adapter.InstancePath(theirs.Wire.ID), Access: token,
		Patience: c.Bounds.Operation,
	})
	untroubled(c, before, "another tenant's instance was observed with a platform token that is not for it",
		ours, theirs)
	if name, body, ok := actionBody(c, theirs, trial.NewID("key"), token); ok {
		c.Call(trial.Letter{
			Method: http.MethodPost, Target: adapter.ActionPath(theirs.Wire.ID, name), Body: body,
			Patience: c.Bounds.Operation,
		})
		untroubled(
			c, before, "an action on another tenant's instance had a platform token that is not for it", ours, theirs,
		)
	}
}

// tenancyNames observes both instances of one name: each observation is of its own instance and
// members.
func tenancyNames(c *trial.Check) {
	ours, theirs := neighbours(c)
	for _, i := range []*trial.Instance{ours, theirs} {
		seen, answer := c.Observe(i)
		c.Require(answer.Status == http.StatusOK && seen.InstanceID == i.Wire.ID,
			"the observation of one of two instances of the same name returned %s", answer.Say())
		for _, member := range seen.Members {
			own := slices.ContainsFunc(i.Members, func(m adapter.Member) bool { return m.ID == member.ID })
			c.Require(own,
				"the observation of one of two instances of the same name has member %s, not its own", member.ID)
		}
	}
}

// tenancyKeys uses one idempotency key for an action on each of two tenants' instances: neither may
// count as the repeat of the other. That the second did nothing proves something only where the
// first did something.
func tenancyKeys(c *trial.Check) {
	ours, theirs := neighbours(c)
	key := trial.NewID("key")
	for _, i := range []*trial.Instance{ours, theirs} {
		other := ours
		if i == ours {
			other = theirs
		}
		before := tasksOf(c, other)
		name, body, ok := actionBody(c, i, key, c.Grant(i, trial.NewID("call")).Token())
		if !ok {
			c.Skip("the app describes no action that changes something and whose input the suite can generate")
		}
		own := tasksOf(c, i)
		answer := c.Call(trial.Letter{
			Method: http.MethodPost, Target: adapter.ActionPath(i.Wire.ID, name), Body: body,
			Patience: c.Bounds.Operation,
		})
		if c.Excused(name, answer) {
			c.Skip("the app refuses %s, as it may", name)
		}
		c.Require(answer.Status == http.StatusOK,
			"action %s with a key that another tenant has used returned %s", name, answer.Say())
		untroubled(c, before, "the action was for one tenant's instance, not for the other's", other)
		if i == ours {
			c.Suite.NeighbourTasks = tasksOf(c, i) - own
			continue
		}
		c.Require(c.NeighbourTasks == 0 || tasksOf(c, i) > own,
			"action %s with a key that another tenant has used succeeded, but nothing was done", name)
	}
}

// tenancyAnswers looks in the answers about one tenant's instance for the names of another's.
func tenancyAnswers(c *trial.Check) {
	ours, theirs := neighbours(c)
	strange := append(
		[]string{theirs.Wire.ID, theirs.Wire.TenantID, theirs.Wire.ProjectID, c.NeighbourBegan},
		theirs.All...)
	token := c.Grant(ours, trial.NewID("call")).Token()
	for _, l := range []trial.Letter{
		{Method: http.MethodGet, Target: adapter.InstancePath(ours.Wire.ID), Access: token,
			Patience: c.Bounds.Operation},
		{Method: http.MethodGet, Target: adapter.UsagePath(ours.Wire.ID, ""), Access: token},
		{Method: http.MethodGet, Target: adapter.InstancePath(trial.NewID("ins")), Access: token},
	} {
		answer := c.Call(l)
		for _, word := range strange {
			c.Require(!strings.Contains(string(answer.Body), word),
				"the answer of %s %s contains %s, which is another tenant's", l.Method, l.Target, word)
		}
	}
}
