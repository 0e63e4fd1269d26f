package conformance

import (
	"net/http"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func statusClauses() []Clause {
	return []Clause{
		{ID: "status.unknown", Section: "GET /v1/operations/{id}", Rule: "an operation that was never dispatched is 404",
			Fix: "answer 404 with {code, message}; do not invent a status", run: statusUnknown},
		{ID: "route.unknown", Section: "Paths", Rule: "a path that is not of the contract is 404",
			Fix: "answer 404 with {code, message} for every other path", run: routeUnknown},
	}
}

func statusUnknown(c *check) {
	target := adapter.OperationPath(newID("op"))
	c.refused("the status of an unknown operation", c.call(letter{method: http.MethodGet, target: target}), http.StatusNotFound)
}

func routeUnknown(c *check) {
	c.refused("an unknown path", c.call(letter{method: http.MethodGet, target: "/v1/conformance"}), http.StatusNotFound)
}
