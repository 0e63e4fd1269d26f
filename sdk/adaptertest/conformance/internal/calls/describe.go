package calls

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inDescribe = "GET /v1/adapter"

// Describe returns the clauses on the adapter's description.
func Describe() []trial.Clause {
	return []trial.Clause{
		{ID: "describe.valid", Section: inDescribe, Run: describeValid,
			Rule: "the description names the adapter and describes each app with the contract's fields and values",
			Fix:  "correct the description; its shape is Description in the OpenAPI document"},
		{ID: "describe.schemas", Section: inDescribe, Run: describeSchemas,
			Rule: "config, input and output schemas are self-contained JSON Schemas",
			Fix:  "correct the schema; references to other documents are not followed"},
		{ID: "describe.versions", Section: inDescribe, Run: describeVersions,
			Rule: "contractVersions has at least one version that the platform speaks",
			Fix:  "list the versions you speak, newest first, such as [\"1.1\",\"1.0\"]"},
		{ID: "describe.stable", Section: inDescribe, Run: describeStable,
			Rule: "the description is the same each time it is read",
			Fix:  "build the description from what the build knows, without times, counters or the order of a map"},
	}
}

// describeValid checks the fields of the description that the platform depends on.
func describeValid(c *trial.Check) {
	var d adapter.Description
	answer := c.Get(adapter.AdapterPath, &d)
	c.Require(answer.Status == http.StatusOK, "GET /v1/adapter returned %s", answer.Say())
	c.Shape(answer, "Description")
	c.Require(d.Name == c.Options.Name, "name is %q, and the adapter is registered as %q", d.Name, c.Options.Name)
	c.Require(d.Build != "", "build is empty: support cannot tell which build runs")
	c.Require(len(d.Apps) > 0, "apps is empty")
	for n, app := range d.Apps {
		if wrong := wrongApp(app); wrong != "" {
			c.Fail("apps[%d].%s", n, wrong)
		}
	}
}

// wrongApp returns the first thing that is wrong with an app's description; empty when nothing is.
func wrongApp(app adapter.AppInfo) string {
	seen := map[string]bool{}
	for n, one := range app.Components {
		switch {
		case one.Key == "" || seen["c "+one.Key]:
			return fmt.Sprintf("components[%d].key is empty or used twice", n)
		case one.Min < 0 || one.Max < one.Min || one.Default < one.Min || one.Default > one.Max:
			return fmt.Sprintf("components[%d] has min %d, default %d, max %d: need 0 <= min <= default <= max",
				n, one.Min, one.Default, one.Max)
		}
		seen["c "+one.Key] = true
	}
	for n, kind := range app.Operations {
		if !kind.Valid() {
			return fmt.Sprintf("operations[%d] is %q, which is not an operation kind", n, kind)
		}
	}
	for n, action := range app.Actions {
		if action.Name == "" || seen["a "+action.Name] || action.PermissionKey == "" || !action.Risk.Valid() {
			return fmt.Sprintf(
				"actions[%d] needs a unique name, a permission key and a risk of read, write or destructive", n,
			)
		}
		seen["a "+action.Name] = true
	}
	switch {
	case app.Slug == "":
		return "slug is empty"
	case len(app.Components) == 0:
		return "components is empty"
	case !slices.Contains(app.Operations, adapter.InstanceCreate) ||
		!slices.Contains(app.Operations, adapter.InstanceDecommission):
		return "operations must contain instance.create and instance.decommission"
	}
	return ""
}

func describeSchemas(c *trial.Check) {
	for n, app := range c.Description.Apps {
		_, err := trial.Compile(app.ConfigSchema)
		c.Require(err == nil, "apps[%d].configSchema: %v", n, err)
		for m, action := range app.Actions {
			_, err := trial.Compile(action.InputSchema)
			c.Require(err == nil, "apps[%d].actions[%d].inputSchema: %v", n, m, err)
			_, err = trial.Compile(action.OutputSchema)
			c.Require(err == nil, "apps[%d].actions[%d].outputSchema: %v", n, m, err)
		}
	}
}

func describeVersions(c *trial.Check) {
	versions := c.Description.ContractVersions
	known := slices.ContainsFunc(versions, func(v string) bool {
		return slices.Contains(adapter.ContractVersions(), v)
	})
	c.Require(known, "contractVersions is %q; the platform speaks %q", versions, adapter.ContractVersions())
	for _, version := range versions {
		c.Require(strings.Count(version, ".") == 1, "contractVersions contains %q, which is not MAJOR.MINOR", version)
	}
}

func describeStable(c *trial.Check) {
	first := c.Call(trial.Letter{Method: http.MethodGet, Target: adapter.AdapterPath})
	second := c.Call(trial.Letter{Method: http.MethodGet, Target: adapter.AdapterPath})
	c.Require(bytes.Equal(first.Body, second.Body), "two descriptions in a row differ")
}
