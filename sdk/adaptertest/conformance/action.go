package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inActions = "POST /v1/instances/{id}/actions/{name}"

func actionClauses() []Clause {
	return []Clause{
		{ID: "action.unknown", Section: inActions, Rule: "an action that is not described is 404", Needs: []string{created},
			Fix: "answer 404 with {code, message} for names you do not describe", run: actionUnknown},
		{ID: "action.output", Section: inActions, Rule: "an action's output fits its output schema", Needs: []string{created, "describe.schemas"},
			Fix: "validate the output before you answer, or correct the schema", run: actionOutput},
		{ID: "action.input", Section: inActions, Rule: "an input that breaks the schema is refused with 422 and its path, and nothing is done", Needs: []string{created, "describe.schemas"},
			Fix: "validate the input against the schema you describe and answer 422 with a path that begins with input", run: actionInput},
		{ID: "action.idempotent", Section: inActions, Rule: "a repeat with the same key and input is the same action", Needs: []string{"action.output"},
			Fix: "derive the keys of an action's node tasks from its idempotency key", run: actionIdempotent},
		{ID: "action.key_reused", Section: inActions, Rule: "the same key with another input is refused with 409 IDEMPOTENCY_KEY_REUSED", Needs: []string{"action.output"},
			Fix: "keep a hash of the input beside the key for some hours", run: actionKeyReused},
	}
}

// act calls an action of the instance.
func (c *check) act(i *instance, name, key string, input json.RawMessage) reply {
	body := adapter.ActionRequest{
		Input: input, IdempotencyKey: key, Requester: adapter.Requester{ID: "usr_conformance", Kind: "user"},
		Instance: i.as, Members: i.members, Platform: c.grant(i, newID("call")).Access(),
	}
	return c.call(letter{method: http.MethodPost, target: adapter.ActionPath(i.as.ID, name), body: c.encode(body), patience: c.bounds.Operation})
}

// input is a good input of an action: the given one, or one made from its schema.
func (c *check) input(action adapter.Action) (json.RawMessage, bool) {
	if given, ok := c.options.Inputs[action.Name]; ok {
		return given, true
	}
	value, ok := sample(action.InputSchema)
	if !ok {
		return nil, false
	}
	return c.encode(value), true
}

// actions are the described actions that the suite can call; without any the clause does not apply.
func (c *check) actions() map[string]json.RawMessage {
	inputs := map[string]json.RawMessage{}
	for _, action := range c.app.Actions {
		if input, ok := c.input(action); ok {
			inputs[action.Name] = input
		}
	}
	switch {
	case len(c.app.Actions) == 0:
		c.skip("the app describes no actions")
	case len(inputs) == 0:
		c.skip("no input could be made from the actions' schemas; give one")
	}
	return inputs
}

func actionUnknown(c *check) {
	answer := c.act(c.shared(), "conformance.no-such-action", newID("key"), json.RawMessage(`{}`))
	c.refused("an unknown action", answer, http.StatusNotFound)
}

func actionOutput(c *check) {
	i := c.shared()
	inputs := c.actions()
	for _, action := range c.app.Actions {
		input, ok := inputs[action.Name]
		if !ok {
			continue
		}
		answer := c.act(i, action.Name, newID("key"), input)
		c.unless(answer.status == http.StatusOK, "action %s with input %s was answered %s", action.Name, input, answer.say())
		var result adapter.ActionResult
		c.decode(answer, "the action", &result)
		c.unless(fits(action.OutputSchema, result.Output), "the output of %s breaks its schema: %s", action.Name, clip(string(result.Output), 300))
	}
}

func actionInput(c *check) {
	i := c.shared()
	tried := 0
	for _, action := range c.app.Actions {
		wrong, ok := spoil(action.InputSchema)
		if !ok {
			continue
		}
		tried++
		before := len(c.platform.Ledger(i.as.ID))
		answer := c.act(i, action.Name, newID("key"), c.encode(wrong))
		body := c.refused("action "+action.Name+" with a wrong input", answer, http.StatusUnprocessableEntity)
		c.unless(strings.HasPrefix(body.Path, "input"), "a wrong input of %s was refused with path %q", action.Name, body.Path)
		c.unless(len(c.platform.Ledger(i.as.ID)) == before, "action %s asked for a node task though its input was refused", action.Name)
	}
	if tried == 0 {
		c.skip("the app describes no action whose input can be wrong")
	}
}

func actionIdempotent(c *check) {
	i := c.shared()
	inputs := c.actions()
	for _, action := range c.app.Actions {
		input, ok := inputs[action.Name]
		if !ok {
			continue
		}
		key := newID("key")
		first := c.act(i, action.Name, key, input)
		before := i.begun()
		second := c.act(i, action.Name, key, input)
		c.unless(second.status == first.status, "the repeat of %s was answered %s", action.Name, second.say())
		if begun := i.begunAfter(before); action.Risk != adapter.RiskRead && len(begun) > 0 {
			c.fail("the repeat of %s carried out the node task %s on member %s again", action.Name, begun[0].Kind, begun[0].Member)
		}
		c.unless(action.Risk == adapter.RiskRead || bytes.Equal(first.body, second.body), "the repeat of %s has another output: %s", action.Name, second.say())
	}
}

func actionKeyReused(c *check) {
	i := c.shared()
	inputs := c.actions()
	for _, action := range c.app.Actions {
		other, ok := another(action.InputSchema, inputs[action.Name])
		if !ok {
			continue
		}
		key := newID("key")
		c.act(i, action.Name, key, inputs[action.Name])
		body := c.refused("the same key with another input", c.act(i, action.Name, key, other), http.StatusConflict)
		c.unless(body.Code == adapter.CodeKeyReused, "it was refused with %s, not %s", body.Code, adapter.CodeKeyReused)
		return
	}
	c.skip("no action has two different inputs that could be made from its schema")
}
