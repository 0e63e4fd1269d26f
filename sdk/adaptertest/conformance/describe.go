package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inDescribe = "GET /v1/adapter"

func describeClauses() []Clause {
	return []Clause{
		{ID: "describe.valid", Section: inDescribe, Rule: "the description names the adapter and describes each app in the contract's words",
			Fix: "correct the description; its shape is Description in the OpenAPI document", run: describeValid},
		{ID: "describe.schemas", Section: inDescribe, Rule: "config, input and output schemas are JSON Schemas that are whole in themselves",
			Fix: "correct the schema; references to other documents are not followed", run: describeSchemas},
		{ID: "describe.versions", Section: inDescribe, Rule: "the contract versions name at least one that the platform speaks",
			Fix: "list the versions you speak, newest first, such as [\"1.1\",\"1.0\"]", run: describeVersions},
		{ID: "describe.stable", Section: inDescribe, Rule: "the description is the same each time it is asked for",
			Fix: "make the description from what the build knows, without times, counters or the order of a map", run: describeStable},
	}
}

func describeValid(c *check) {
	var d adapter.Description
	answer := c.get(adapter.AdapterPath, &d)
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	c.unless(d.Name == c.options.Name, "name is %q, and the adapter is registered as %q", d.Name, c.options.Name)
	c.unless(d.Build != "", "build is empty: support cannot tell which build runs")
	c.unless(len(d.Apps) > 0, "apps is empty")
	for n, app := range d.Apps {
		if wrong := wrongApp(app); wrong != "" {
			c.fail("apps[%d].%s", n, wrong)
		}
	}
}

// wrongApp is the first thing that is wrong with an app's description; empty when nothing is.
func wrongApp(app adapter.AppInfo) string {
	seen := map[string]bool{}
	for n, one := range app.Components {
		switch {
		case one.Key == "" || seen["c "+one.Key]:
			return fmt.Sprintf("components[%d].key is empty or not the first of its name", n)
		case one.Min < 0 || one.Max < one.Min || one.Default < one.Min || one.Default > one.Max:
			return fmt.Sprintf("components[%d] has min %d, default %d, max %d: they must rise from 0", n, one.Min, one.Default, one.Max)
		}
		seen["c "+one.Key] = true
	}
	for n, kind := range app.Operations {
		if !kind.Valid() {
			return fmt.Sprintf("operations[%d] is %q, which is no operation kind", n, kind)
		}
	}
	for n, action := range app.Actions {
		if action.Name == "" || seen["a "+action.Name] || action.PermissionKey == "" || !action.Risk.Valid() {
			return fmt.Sprintf("actions[%d] needs a name of its own, a permission key and a risk of read, write or destructive", n)
		}
		seen["a "+action.Name] = true
	}
	switch {
	case app.Slug == "":
		return "slug is empty"
	case len(app.Components) == 0:
		return "components is empty"
	case !slices.Contains(app.Operations, adapter.InstanceCreate) || !slices.Contains(app.Operations, adapter.InstanceDecommission):
		return "operations must hold instance.create and instance.decommission"
	}
	return ""
}

func describeSchemas(c *check) {
	for n, app := range c.description.Apps {
		_, err := compile(app.ConfigSchema)
		c.unless(err == nil, "apps[%d].configSchema: %v", n, err)
		for m, action := range app.Actions {
			_, err := compile(action.InputSchema)
			c.unless(err == nil, "apps[%d].actions[%d].inputSchema: %v", n, m, err)
			_, err = compile(action.OutputSchema)
			c.unless(err == nil, "apps[%d].actions[%d].outputSchema: %v", n, m, err)
		}
	}
}

func describeVersions(c *check) {
	versions := c.description.ContractVersions
	known := slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(adapter.ContractVersions(), v) })
	c.unless(known, "contractVersions is %q; the platform speaks %q", versions, adapter.ContractVersions())
	for _, version := range versions {
		c.unless(strings.Count(version, ".") == 1, "contractVersions holds %q, which is not MAJOR.MINOR", version)
	}
}

func describeStable(c *check) {
	first := c.call(letter{method: http.MethodGet, target: adapter.AdapterPath})
	second := c.call(letter{method: http.MethodGet, target: adapter.AdapterPath})
	c.unless(bytes.Equal(first.body, second.body), "two descriptions in a row differ")
}
