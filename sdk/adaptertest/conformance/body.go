package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inErrors = "PUT /v1/operations/{id}, 400 and 422"

func bodyClauses() []Clause {
	needs := []string{created}
	return []Clause{
		{ID: "body.not_json", Section: inErrors, Rule: "a body that is not JSON is refused with a code, and nothing is begun", Needs: needs,
			Fix: "answer 400 with {code, message}", run: bodyNotJSON},
		{ID: "body.missing", Section: inErrors, Rule: "a missing field is refused with its path, and nothing is begun", Needs: needs,
			Fix: "check every required field before you begin, and name the one at fault in path", run: bodyMissing},
		{ID: "body.types", Section: inErrors, Rule: "a field of the wrong type is refused with a code, and nothing is begun", Needs: needs,
			Fix: "check the types of fields before you begin", run: bodyTypes},
		{ID: "body.id", Section: inErrors, Rule: "an operationId that is not the path's is refused, and nothing is begun", Needs: needs,
			Fix: "compare the id of the body with the id of the path", run: bodyID},
		{ID: "body.kind", Section: inErrors, Rule: "an unknown operation kind is refused with the path kind, and nothing is begun", Needs: needs,
			Fix: "refuse kinds that you do not describe with 400 or 422 and path \"kind\"", run: bodyKind},
		{ID: "body.app", Section: inErrors, Rule: "an app that the adapter does not run is refused with its path, and nothing is begun", Needs: needs,
			Fix: "refuse other apps with 400 or 422 and path \"instance.app\"", run: bodyApp},
		{ID: "body.component", Section: inErrors, Rule: "a member of an unknown component is refused with its path, and nothing is begun", Needs: needs,
			Fix: "refuse unknown component keys with 400 or 422 and a path that ends in componentKey", run: bodyComponent},
		{ID: "body.config", Section: inErrors, Rule: "a config that breaks the app's schema is refused with its path, and nothing is begun", Needs: needs,
			Fix: "validate instance.config against the schema you describe, also though the platform has done so", run: bodyConfig},
		{ID: "body.target", Section: inErrors, Rule: "a target that is not one of the members is refused with its path, and nothing is begun", Needs: needs,
			Fix: "check that every target is one of members", run: bodyTarget},
		{ID: "body.large", Section: "Bodies", Rule: "a body of more than 1 MiB is refused, and nothing is begun", Needs: needs,
			Fix: "read at most 1 MiB and answer 413", run: bodyLarge},
	}
}

// refuse dispatches a spoiled body, requires a refusal and that nothing came of it.
func (c *check) refuse(i *instance, d adapter.Dispatch, what string, raw []byte) adapter.ErrorBody {
	answer := c.call(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: raw})
	body := c.refused(what, answer, http.StatusBadRequest, http.StatusUnprocessableEntity)
	c.untouched(i, d.OperationID, what)
	return body
}

// spoiled changes the decoded dispatch and encodes it again.
func (c *check) spoiled(d adapter.Dispatch, change func(map[string]any)) []byte {
	var loose map[string]any
	if err := json.Unmarshal(c.encode(d), &loose); err != nil {
		c.notRun("the suite could not decode its own dispatch: %v", err)
	}
	change(loose)
	return c.encode(loose)
}

// fresh is an instance with a dispatch that has not been sent.
func (c *check) fresh() (*instance, adapter.Dispatch) {
	i := c.instance()
	return i, c.dispatch(i, adapter.InstanceCreate)
}

func bodyNotJSON(c *check) {
	i, d := c.fresh()
	whole := c.encode(d)
	for what, raw := range map[string][]byte{"a body cut short": whole[:len(whole)/2], "a body that is text": []byte("dispatch"), "an empty body": {}} {
		c.refuse(i, d, what, raw)
	}
}

func bodyMissing(c *check) {
	for _, field := range []string{"operationId", "kind", "attempt", "deadline", "instance.id", "instance.app", "platform.graphqlUrl", "platform.token"} {
		i, d := c.fresh()
		parent, name, nested := strings.Cut(field, ".")
		raw := c.spoiled(d, func(loose map[string]any) {
			if !nested {
				delete(loose, field)
			} else if object, ok := loose[parent].(map[string]any); ok {
				delete(object, name)
			}
		})
		body := c.refuse(i, d, "a dispatch without "+field, raw)
		c.unless(strings.Contains(body.Path, field), "a dispatch without %s was refused with path %q", field, body.Path)
	}
}

func bodyTypes(c *check) {
	for field, value := range map[string]any{"attempt": "first", "members": "all", "targets": map[string]any{}, "instance": []int{1}, "deadline": "soon"} {
		i, d := c.fresh()
		c.refuse(i, d, "a dispatch whose "+field+" is of the wrong type", c.spoiled(d, func(loose map[string]any) { loose[field] = value }))
	}
}

func bodyID(c *check) {
	i, d := c.fresh()
	other := newID("op")
	c.refuse(i, d, "a dispatch with another operationId than its path", c.spoiled(d, func(loose map[string]any) { loose["operationId"] = other }))
	c.untouched(i, other, "a dispatch with another operationId than its path")
}

func bodyKind(c *check) {
	i, d := c.fresh()
	d.Kind = "instance.conformance"
	body := c.refuse(i, d, "a dispatch of an unknown kind", c.encode(d))
	c.unless(body.Path == "kind", "an unknown kind was refused with path %q", body.Path)
	for _, kind := range adapter.Kinds() {
		if !slices.Contains(c.app.Operations, kind) {
			d.Kind = kind
			c.refuse(i, d, "a dispatch of a kind that the app does not describe", c.encode(d))
			return
		}
	}
}

func bodyApp(c *check) {
	if c.app.Slug == adapter.AnyApp {
		c.skip("the adapter runs any app")
	}
	i, d := c.fresh()
	d.Instance.App = "conformance-no-such-app"
	body := c.refuse(i, d, "a dispatch for another app", c.encode(d))
	c.unless(body.Path == "instance.app", "another app was refused with path %q", body.Path)
}

func bodyComponent(c *check) {
	i, d := c.fresh()
	d.Members = slices.Clone(d.Members)
	d.Members[len(d.Members)-1].ComponentKey = "conformance-no-such-component"
	body := c.refuse(i, d, "a dispatch with a member of an unknown component", c.encode(d))
	c.unless(strings.HasSuffix(body.Path, "componentKey"), "an unknown component was refused with path %q", body.Path)
}

func bodyConfig(c *check) {
	wrong, ok := spoil(c.app.ConfigSchema)
	if !ok {
		c.skip("the app's config schema takes everything that was tried")
	}
	i, d := c.fresh()
	d.Instance.Config = c.encode(wrong)
	body := c.refuse(i, d, "a dispatch whose config breaks the schema", c.encode(d))
	c.unless(strings.HasPrefix(body.Path, "instance.config"), "a config that breaks the schema was refused with path %q", body.Path)
}

func bodyTarget(c *check) {
	i, d := c.fresh()
	d.Targets = []string{newID("mem")}
	body := c.refuse(i, d, "a dispatch with a target that is no member", c.encode(d))
	c.unless(strings.HasPrefix(body.Path, "targets"), "a target that is no member was refused with path %q", body.Path)
}

func bodyLarge(c *check) {
	i, d := c.fresh()
	raw := c.spoiled(d, func(loose map[string]any) {
		loose["conformancePadding"] = string(bytes.Repeat([]byte("a"), adapter.MaxBody))
	})
	answer, err := c.try(letter{method: http.MethodPut, target: adapter.OperationPath(d.OperationID), body: raw})
	// An adapter may close the connection on a body it will not read; then there is no answer to see.
	if err == nil {
		c.refused("a body of more than 1 MiB", answer, http.StatusRequestEntityTooLarge, http.StatusBadRequest)
	}
	c.untouched(i, d.OperationID, "a body of more than 1 MiB")
}
