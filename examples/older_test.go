package examples_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// olderPlatform serves version 1 of the API: it refuses what the frozen SDL does not have, as that platform did, and
// answers the rest from the types, with values that no client knows.
func olderPlatform(t *testing.T) (environment []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/api/v1/schema.graphql")
	require.NoError(t, err)
	schema := gqlparser.MustLoadSchema(&ast.Source{Name: "v1", Input: string(text)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Query string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		envelope := map[string]any{}
		if doc, problems := gqlparser.LoadQueryWithRules(schema, asked.Query,
			rules.NewDefaultRules()); len(problems) > 0 {
			envelope["errors"] = []any{map[string]any{"message": problems[0].Message,
				"extensions": map[string]any{"code": "DOCUMENT_INVALID", "retryable": false}}}
		} else {
			envelope["data"] = answered(schema, doc.Operations[0].SelectionSet)
		}
		_ = json.NewEncoder(w).Encode(envelope)
	}))
	t.Cleanup(server.Close)
	newer, err := filepath.Abs("../internal/tools/clients/testdata/newer.txt")
	require.NoError(t, err)
	return []string{"OLDER_PLATFORM=" + server.URL, "NEWER_OPERATIONS=" + newer}
}

// answered returns an object with a value for each requested field.
func answered(schema *ast.Schema, set ast.SelectionSet) map[string]any {
	object := map[string]any{}
	for _, selection := range set {
		switch one := selection.(type) {
		case *ast.Field:
			object[one.Alias] = valueOf(schema, one, one.Definition.Type)
		case *ast.InlineFragment:
			for name, value := range answered(schema, one.SelectionSet) {
				object[name] = value
			}
		case *ast.FragmentSpread:
			for name, value := range answered(schema, one.Definition.SelectionSet) {
				object[name] = value
			}
		}
	}
	return object
}

func valueOf(schema *ast.Schema, field *ast.Field, of *ast.Type) any {
	switch {
	case of.Elem != nil:
		return []any{valueOf(schema, field, of.Elem)}
	case len(field.SelectionSet) > 0:
		return answered(schema, field.SelectionSet)
	case of.NamedType == "Int" || of.NamedType == "Float":
		return 1
	case of.NamedType == "Boolean":
		return true
	case schema.Types[of.NamedType].Kind == ast.Enum:
		return "a value of tomorrow"
	}
	return "text"
}

func TestPythonClientsOwnTestsPassWithAnOlderPlatform(t *testing.T) {
	t.Parallel()
	if exec.Command(python, "-c", "import websocket").Run() != nil {
		t.Skip("python3-websocket is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	cmd.Dir = "../sdk/python-client"
	cmd.Env = append(append(cmd.Environ(), "PYTHONDONTWRITEBYTECODE=1"), olderPlatform(t)...)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
	require.NotContains(t, string(output), "skipped")
}
