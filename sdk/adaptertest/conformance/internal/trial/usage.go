package trial

import (
	"net/http"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// InUsage is the section of the clauses on usage.
const InUsage = "GET /v1/instances/{id}/usage"

// Metered is the shared instance; the clause is skipped for apps without usage.
func (c *Check) Metered() *Instance {
	if len(c.App.UsageDimensions) == 0 {
		c.Skip("the app describes no usage dimensions")
	}
	return c.Shared()
}

// Usage reads one page of an instance's usage.
func (c *Check) Usage(i *Instance, cursor string) adapter.UsagePage {
	answer := c.Call(Letter{
		Method: http.MethodGet, Target: adapter.UsagePath(i.Wire.ID, cursor),
		Access: c.Grant(i, NewID("call")).Token(),
	})
	c.Require(answer.Status == http.StatusOK, "the usage returned %s", answer.Say())
	var page adapter.UsagePage
	c.Decode(answer, "the usage", &page)
	return page
}
