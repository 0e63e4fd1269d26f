// Package calls holds the clauses on single requests: descriptions, signatures, bodies, statuses,
// observations, actions, usage, plans, and on all answers of a run together.
package calls

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inActions = "POST /v1/instances/{id}/actions/{name}"

// Action returns the clauses on actions.
func Action() []trial.Clause {
	return []trial.Clause{
		{ID: "action.unknown", Section: inActions, Needs: []string{trial.Created}, Run: actionUnknown,
			Rule: "a call of an action that is not described returns 404",
			Fix:  "answer 404 with {code, message} for names you do not describe"},
		{ID: "action.output", Section: inActions, Needs: []string{trial.Created, "describe.schemas"}, Run: actionOutput,
			Rule: "an action's output fits its output schema",
			Fix: "answer 200 with an output that fits the schema; if the app refuses the generated input, give one " +
				"with --input; name an action that it may refuse with any input by --refusable"},
		{ID: "action.input", Section: inActions, Needs: []string{trial.Created, "describe.schemas"}, Run: actionInput,
			Rule: "an input that breaks the schema is refused with 422 and its path, and nothing is done",
			Fix: "validate the input against the schema you describe and answer 422 with a path that " +
				"begins with input"},
		{ID: "action.idempotent", Section: inActions, Needs: []string{"action.output"}, Run: actionIdempotent,
			Rule: "a repeat with the same key and input is the same action",
			Fix:  "derive the keys of an action's node tasks from its idempotency key"},
		{ID: "action.key_reused", Section: inActions, Needs: []string{"action.output"}, Run: actionKeyReused,
			Rule: "the same key with another input is refused with 409 IDEMPOTENCY_KEY_REUSED",
			Fix:  "keep a hash of the input with the key for some hours"},
	}
}

// inputs returns good inputs of the described actions; without any the clause does not apply.
func inputs(c *trial.Check) map[string]json.RawMessage {
	inputs := map[string]json.RawMessage{}
	for _, action := range c.App.Actions {
		if input, ok := c.Input(action); ok {
			inputs[action.Name] = input
		}
	}
	switch {
	case len(c.App.Actions) == 0:
		c.Skip("the app describes no actions")
	case len(inputs) == 0:
		c.Skip("no input could be generated from the actions' schemas: give one with --input")
	}
	return inputs
}

func actionUnknown(c *trial.Check) {
	answer := c.Act(c.Shared(), "conformance.no-such-action", trial.NewID("key"), json.RawMessage(`{}`))
	c.Refused("an unknown action", answer, http.StatusNotFound)
}

// actionOutput calls every action that it has an input for and validates the output against its
// schema.
func actionOutput(c *trial.Check) {
	i := c.Shared()
	inputs := inputs(c)
	var refused []string
	for _, action := range c.App.Actions {
		input, ok := inputs[action.Name]
		if !ok {
			continue
		}
		answer := c.Act(i, action.Name, trial.NewID("key"), input)
		if c.Excused(action.Name, answer) {
			refused = append(refused, action.Name)
			continue
		}
		c.Require(answer.Status == http.StatusOK, "action %s with %s returned %s", action.Name, input, answer.Say())
		var result adapter.ActionResult
		c.Decode(answer, "the action", &result)
		c.Require(trial.Fits(action.OutputSchema, result.Output),
			"the output of %s breaks its schema: %s", action.Name, text.Clip(string(result.Output), 300))
	}
	if len(refused) == len(inputs) {
		c.Skip("the app refuses %s, as it may", strings.Join(refused, ", "))
	}
}

// actionInput calls every action with an input that breaks its schema. The ledger of node tasks
// shows that the adapter did nothing before it refused.
func actionInput(c *trial.Check) {
	i := c.Shared()
	tried := 0
	for _, action := range c.App.Actions {
		wrong, ok := trial.Spoil(action.InputSchema)
		if !ok {
			continue
		}
		tried++
		before := len(c.Platform.Ledger(i.Wire.ID))
		answer := c.Act(i, action.Name, trial.NewID("key"), c.Encode(wrong))
		body := c.Refused("action "+action.Name+" with a wrong input", answer, http.StatusUnprocessableEntity)
		c.Require(strings.HasPrefix(body.Path, "input"),
			"a wrong input of %s was refused with path %q", action.Name, body.Path)
		c.Require(len(c.Platform.Ledger(i.Wire.ID)) == before,
			"action %s requested a node task although its input was refused", action.Name)
	}
	if tried == 0 {
		c.Skip("the app describes no action whose input can be wrong")
	}
}

// actionIdempotent repeats every action with its key. An action that only reads may answer again;
// any other gives the same output and begins no task.
func actionIdempotent(c *trial.Check) {
	i := c.Shared()
	inputs := inputs(c)
	for _, action := range c.App.Actions {
		input, ok := inputs[action.Name]
		if !ok {
			continue
		}
		key := trial.NewID("key")
		first := c.Act(i, action.Name, key, input)
		before := i.Begun()
		second := c.Act(i, action.Name, key, input)
		c.Require(second.Status == first.Status, "the repeat of %s returned %s", action.Name, second.Say())
		if begun := i.BegunAfter(before); action.Risk != adapter.RiskRead && len(begun) > 0 {
			c.Fail("the repeat of %s carried out the node task %s on member %s again",
				action.Name, begun[0].Kind, begun[0].Member)
		}
		c.Require(action.Risk == adapter.RiskRead || bytes.Equal(first.Body, second.Body),
			"the repeat of %s has another output: %s", action.Name, second.Say())
	}
}

// actionKeyReused calls the first action that has two different inputs with both of them under one
// key.
func actionKeyReused(c *trial.Check) {
	i := c.Shared()
	inputs := inputs(c)
	for _, action := range c.App.Actions {
		other, ok := trial.Another(action.InputSchema, inputs[action.Name])
		if !ok {
			continue
		}
		key := trial.NewID("key")
		c.Act(i, action.Name, key, inputs[action.Name])
		body := c.Refused("the same key with another input", c.Act(i, action.Name, key, other), http.StatusConflict)
		c.Require(body.Code == adapter.CodeKeyReused, "it was refused with %s, not %s", body.Code,
			adapter.CodeKeyReused)
		return
	}
	c.Skip("no action has a schema from which two different inputs can be generated")
}
