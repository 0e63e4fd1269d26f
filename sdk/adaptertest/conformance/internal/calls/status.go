package calls

import (
	"net/http"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Status returns the clauses on unknown operations and paths.
func Status() []trial.Clause {
	return []trial.Clause{
		{ID: "status.unknown", Section: "GET /v1/operations/{id}", Run: statusUnknown,
			Rule: "the status of an operation that was never dispatched is 404",
			Fix:  "answer 404 with {code, message}; do not invent a status"},
		{ID: "route.unknown", Section: "Paths", Run: routeUnknown,
			Rule: "a path that is not in the contract is 404",
			Fix:  "answer 404 with {code, message} for every other path"},
	}
}

func statusUnknown(c *trial.Check) {
	target := adapter.OperationPath(trial.NewID("op"))
	c.Refused(
		"the status of an unknown operation", c.Call(trial.Letter{Method: http.MethodGet, Target: target}),
		http.StatusNotFound,
	)
}

func routeUnknown(c *trial.Check) {
	c.Refused(
		"an unknown path", c.Call(trial.Letter{Method: http.MethodGet, Target: "/v1/conformance"}), http.StatusNotFound,
	)
}
