package workers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
)

// firstContract narrows an adapter to the contract as it was first published, by its document: it announces 1.0 alone,
// has no other routes, and answers with no other fields. Requests reach it as they were signed, with all fields, since
// every version of the contract has to ignore unknown ones.
type firstContract struct {
	next    http.Handler
	paths   map[string]any
	schemas map[string]any
	refused atomic.Int32 // requests of what the document does not have
}

func newFirstContract(t *testing.T) *firstContract {
	t.Helper()
	raw, err := os.ReadFile("../docs/adapter-contract/v1.0/openapi.yaml")
	require.NoError(t, err)
	var document struct {
		Paths      map[string]any `yaml:"paths"`
		Components struct {
			Schemas map[string]any `yaml:"schemas"`
		} `yaml:"components"`
	}
	require.NoError(t, yaml.Unmarshal(raw, &document))
	return &firstContract{paths: document.Paths, schemas: document.Components.Schemas}
}

func (f *firstContract) before(next http.Handler) http.Handler {
	f.next = next
	return f
}

func (f *firstContract) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	schema, ok := f.answers(r)
	if !ok {
		f.refused.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"code":"NOT_FOUND","message":"no such route"}`))
		return
	}
	kept := httptest.NewRecorder()
	f.next.ServeHTTP(kept, r)
	var body any
	if kept.Code >= http.StatusBadRequest {
		schema = "ErrorBody"
	}
	if json.Unmarshal(kept.Body.Bytes(), &body) == nil {
		body = f.pruned(body, f.schemas[schema])
		if object, is := body.(map[string]any); is && schema == "Description" {
			object["contractVersions"] = []string{"1.0"}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(kept.Code)
	_ = json.NewEncoder(w).Encode(body)
}

// answers is the name of the body that a request is answered with; false for a route that the document does not have.
func (f *firstContract) answers(r *http.Request) (string, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for path := range f.paths {
		named := strings.Split(strings.Trim(path, "/"), "/")
		if len(named) != len(parts) || !slices.EqualFunc(named, parts, func(a, b string) bool {
			return a == b || a[0] == '{'
		}) {
			continue
		}
		if _, has := f.paths[path].(map[string]any)[strings.ToLower(r.Method)]; !has {
			return "", false
		}
		if path == "/v1/instances/{id}" {
			return "Observation", true
		}
		return map[string]string{"adapter": "Description", "operations": "OperationsPage", "{id}": "Status",
			"cancel": "CancelResult", "usage": "UsagePage", "{name}": "ActionResult"}[named[len(named)-1]], true
	}
	return "", false
}

// pruned is a body without the fields that its schema does not have.
func (f *firstContract) pruned(body, schema any) any {
	rules, _ := schema.(map[string]any)
	if ref, is := rules["$ref"].(string); is {
		return f.pruned(body, f.schemas[ref[strings.LastIndex(ref, "/")+1:]])
	}
	switch body := body.(type) {
	case []any:
		for i := range body {
			body[i] = f.pruned(body[i], rules["items"])
		}
	case map[string]any:
		properties, has := rules["properties"].(map[string]any)
		for name, value := range body {
			if _, known := properties[name]; has && !known {
				delete(body, name)
			} else if has {
				body[name] = f.pruned(value, properties[name])
			}
		}
	}
	return body
}

// An adapter that was written against the contract's first version launches, grows, is upgraded and rolled back, and is
// torn down on this platform.
func TestAnAdapterOfTheFirstContractRunsFromLaunchToTeardown(t *testing.T) {
	t.Parallel()
	shown := []lifecycle.OperationKind{lifecycle.MembersAdd, lifecycle.InstanceUpgrade, lifecycle.InstanceRollback,
		lifecycle.InstanceDecommission}
	for _, r := range rules {
		if !slices.Contains(shown, r.kind) {
			continue
		}
		t.Run(string(r.kind), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.pace.Grace = time.Minute
			l.work()
			first := newFirstContract(t)
			c := l.clusterOf("first", &patientApp{front: first.before}) // launched
			var target adapterclient.Target
			require.NoError(t, c.pool().QueryRow(t.Context(), `SELECT name, url
				FROM adapter`).Scan(&target.Name, &target.URL))
			client := adapterclient.New(l.ring, dial.Loopback())
			defer client.Close()
			said, err := client.Describe(t.Context(), target)
			require.NoError(t, err)
			require.Equal(t, []string{"1.0"}, said.ContractVersions)
			c.work()
			stop := c.rob(c.ask(asked{kind: r.kind}))
			op := c.end()
			stop()
			require.Equal(t, r.good, c.world(), op.ErrorMessage)
			require.Zero(t, first.refused.Load(), "nothing was requested that 1.0 does not have")
		})
	}
}
