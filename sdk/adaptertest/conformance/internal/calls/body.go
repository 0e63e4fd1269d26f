package calls

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inErrors = "PUT /v1/operations/{id}, 400 and 422"

// Body returns the clauses on malformed and wrong bodies.
func Body() []trial.Clause {
	needs := []string{trial.Created}
	return []trial.Clause{
		{ID: "body.not_json", Section: inErrors, Needs: needs, Run: bodyNotJSON,
			Rule: "a body that is not JSON is refused with a code, and nothing is started",
			Fix:  "answer 400 with {code, message}"},
		{ID: "body.missing", Section: inErrors, Needs: needs, Run: bodyMissing,
			Rule: "a missing field is refused with its path, and nothing is started",
			Fix:  "check every required field before you start anything, and name the missing one in path"},
		{ID: "body.types", Section: inErrors, Needs: needs, Run: bodyTypes,
			Rule: "a field of the wrong type is refused with a code, and nothing is started",
			Fix:  "check the types of fields before you start anything"},
		{ID: "body.id", Section: inErrors, Needs: needs, Run: bodyID,
			Rule: "an operationId that is not the path's is refused, and nothing is started",
			Fix:  "compare the id of the body with the id of the path"},
		{ID: "body.kind", Section: inErrors, Needs: needs, Run: bodyKind,
			Rule: "an unknown operation kind is refused with the path kind, and nothing is started",
			Fix:  "refuse kinds that you do not describe with 400 or 422 and path \"kind\""},
		{ID: "body.app", Section: inErrors, Needs: needs, Run: bodyApp,
			Rule: "an app that the adapter does not run is refused with its path, and nothing is started",
			Fix:  "refuse other apps with 400 or 422 and path \"instance.app\""},
		{ID: "body.component", Section: inErrors, Needs: needs, Run: bodyComponent,
			Rule: "a member of an unknown component is refused with its path, and nothing is started",
			Fix:  "refuse unknown component keys with 400 or 422 and a path that ends in componentKey"},
		{ID: "body.config", Section: inErrors, Needs: needs, Run: bodyConfig,
			Rule: "a config that breaks the app's schema is refused with its path, and nothing is started",
			Fix:  "validate instance.config against the schema you describe, although the platform has done so too"},
		{ID: "body.target", Section: inErrors, Needs: needs, Run: bodyTarget,
			Rule: "a target that is not one of the members is refused with its path, and nothing is started",
			Fix:  "check that every target is one of members"},
		{ID: "body.large", Section: "Bodies", Needs: needs, Run: bodyLarge,
			Rule: "a body of more than 1 MiB is refused, and nothing is started",
			Fix:  "read at most 1 MiB and answer 413"},
	}
}

// refuse dispatches a spoiled body and requires a refusal without effects.
func refuse(c *trial.Check, i *trial.Instance, d adapter.Dispatch, what string, raw []byte) adapter.ErrorBody {
	answer := c.Call(trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: raw})
	body := c.Refused(what, answer, http.StatusBadRequest, http.StatusUnprocessableEntity)
	c.StaysUntouched(i, d.OperationID, what)
	return body
}

// spoiled returns a dispatch as JSON after a change to its decoded form.
func spoiled(c *trial.Check, d adapter.Dispatch, change func(map[string]any)) []byte {
	var loose map[string]any
	if err := json.Unmarshal(c.Encode(d), &loose); err != nil {
		c.NotRun("the suite could not decode its own dispatch: %v", err)
	}
	change(loose)
	return c.Encode(loose)
}

func bodyNotJSON(c *trial.Check) {
	i, d := c.Fresh()
	whole := c.Encode(d)
	for what, raw := range map[string][]byte{
		"a body cut short": whole[:len(whole)/2], "a body that is text": []byte("dispatch"), "an empty body": {},
	} {
		refuse(c, i, d, what, raw)
	}
}

// bodyMissing leaves every required field out, one at a time: the path of the refusal names it.
func bodyMissing(c *trial.Check) {
	for _, field := range []string{
		"operationId", "kind", "attempt", "deadline", "instance.id", "instance.app",
		"platform.graphqlUrl", "platform.token",
	} {
		i, d := c.Fresh()
		parent, name, nested := strings.Cut(field, ".")
		raw := spoiled(c, d, func(loose map[string]any) {
			if !nested {
				delete(loose, field)
			} else if object, ok := loose[parent].(map[string]any); ok {
				delete(object, name)
			}
		})
		body := refuse(c, i, d, "a dispatch without "+field, raw)
		c.Require(strings.Contains(body.Path, field), "a dispatch without %s was refused with path %q",
			field, body.Path)
	}
}

func bodyTypes(c *trial.Check) {
	for field, value := range map[string]any{
		"attempt": "first", "members": "all", "targets": map[string]any{}, "instance": []int{1}, "deadline": "soon",
	} {
		i, d := c.Fresh()
		refuse(
			c, i, d, "a dispatch whose "+field+" is of the wrong type",
			spoiled(c, d, func(loose map[string]any) { loose[field] = value }),
		)
	}
}

func bodyID(c *trial.Check) {
	i, d := c.Fresh()
	other := trial.NewID("op")
	refuse(
		c, i, d, "a dispatch with another operationId than its path",
		spoiled(c, d, func(loose map[string]any) { loose["operationId"] = other }),
	)
	c.StaysUntouched(i, other, "a dispatch with another operationId than its path")
}

// bodyKind dispatches a kind that the contract does not know, and one that it knows and the app
// does not describe.
func bodyKind(c *trial.Check) {
	i, d := c.Fresh()
	d.Kind = "instance.conformance"
	body := refuse(c, i, d, "a dispatch of an unknown kind", c.Encode(d))
	c.Require(body.Path == "kind", "an unknown kind was refused with path %q", body.Path)
	for _, kind := range adapter.Kinds() {
		if !slices.Contains(c.App.Operations, kind) {
			d.Kind = kind
			refuse(c, i, d, "a dispatch of a kind that the app does not describe", c.Encode(d))
			return
		}
	}
}

func bodyApp(c *trial.Check) {
	if c.App.Slug == adapter.AnyApp {
		c.Skip("the adapter runs any app")
	}
	i, d := c.Fresh()
	d.Instance.App = "conformance-no-such-app"
	body := refuse(c, i, d, "a dispatch for another app", c.Encode(d))
	c.Require(body.Path == "instance.app", "another app was refused with path %q", body.Path)
}

func bodyComponent(c *trial.Check) {
	i, d := c.Fresh()
	d.Members = slices.Clone(d.Members)
	d.Members[len(d.Members)-1].ComponentKey = "conformance-no-such-component"
	body := refuse(c, i, d, "a dispatch with a member of an unknown component", c.Encode(d))
	c.Require(strings.HasSuffix(body.Path, "componentKey"), "an unknown component was refused with path %q", body.Path)
}

// bodyConfig dispatches a config that breaks the schema: the adapter validates it although the
// platform does too.
func bodyConfig(c *trial.Check) {
	wrong, ok := trial.Spoil(c.App.ConfigSchema)
	if !ok {
		c.Skip("the app's config schema accepts every config that was tried")
	}
	i, d := c.Fresh()
	d.Instance.Config = c.Encode(wrong)
	body := refuse(c, i, d, "a dispatch whose config breaks the schema", c.Encode(d))
	c.Require(strings.HasPrefix(body.Path, "instance.config"),
		"a config that breaks the schema was refused with path %q", body.Path)
}

func bodyTarget(c *trial.Check) {
	i, d := c.Fresh()
	d.Targets = []string{trial.NewID("mem")}
	body := refuse(c, i, d, "a dispatch with a target that is not a member", c.Encode(d))
	c.Require(strings.HasPrefix(body.Path, "targets"), "a target outside members was refused with path %q", body.Path)
}

// bodyLarge pads a dispatch beyond what the contract allows.
func bodyLarge(c *trial.Check) {
	i, d := c.Fresh()
	raw := spoiled(c, d, func(loose map[string]any) {
		loose["conformancePadding"] = string(bytes.Repeat([]byte("a"), adapter.MaxBody))
	})
	answer, err := c.Try(trial.Letter{Method: http.MethodPut, Target: adapter.OperationPath(d.OperationID), Body: raw})
	// An adapter may close the connection on a body that it will not read; then there is no answer
	// to check.
	if err == nil {
		c.Refused("a body of more than 1 MiB", answer, http.StatusRequestEntityTooLarge, http.StatusBadRequest)
	}
	c.StaysUntouched(i, d.OperationID, "a body of more than 1 MiB")
}
