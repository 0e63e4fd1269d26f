package adapter

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/json"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
)

const (
	contractFile  = "../../docs/adapter-contract/openapi.yaml"
	publishedFile = "../../docs/adapter-contract/v1.0/openapi.yaml"
)

// loadRouter loads the document once; every exchange of every test in this package is checked against it.
var loadRouter = sync.OnceValues(func() (routers.Router, error) {
	document, err := openapi3.NewLoader().LoadFromFile(contractFile)
	if err != nil {
		return nil, err
	}
	document.Servers = nil
	return gorillamux.NewRouter(document)
})

// checkExchange requires that a request and its answer are what the document says. Requests that
// the adapter refused as malformed are expected to break it, their answers are not.
func checkExchange(t *testing.T, req *http.Request, body []byte, resp *http.Response, answer []byte) {
	t.Helper()
	router, err := loadRouter()
	require.NoError(t, err)
	route, params, err := router.FindRoute(req)
	if err != nil {
		require.Equal(t, http.StatusNotFound, resp.StatusCode, "a route that is not in the document answers")
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: req, Route: route, PathParams: params,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true},
	}
	malformed := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestEntityTooLarge}
	if !slices.Contains(malformed, resp.StatusCode) && !slices.Contains([]int{422, 500}, resp.StatusCode) {
		require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input), "request")
	}
	if resp.StatusCode == http.StatusInternalServerError {
		return
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: resp.StatusCode, Header: resp.Header,
		Body: io.NopCloser(bytes.NewReader(answer)), Options: input.Options,
	}
	require.NoError(t, openapi3filter.ValidateResponse(context.Background(), output), "answer %d: %s", resp.StatusCode,
		answer)
}

func loadContract(t *testing.T, file string) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile(file)
	require.NoError(t, err)
	require.NoError(t, document.Validate(context.Background()))
	return document
}

func TestDocumentListsExactlyTheRoutesOfTheKit(t *testing.T) {
	t.Parallel()
	document := loadContract(t, contractFile)
	var written []string
	for path, item := range document.Paths.Map() {
		for method := range item.Operations() {
			written = append(written, method+" "+path)
		}
	}
	require.ElementsMatch(t, (&Kit{}).Routes(), written)
}

// wireTypes are the types of the wire and the enums, by the names of their schemas.
func wireTypes() (structs map[string]reflect.Type, enums map[string][]string) {
	structs = map[string]reflect.Type{}
	for _, v := range []any{
		Description{}, AppInfo{}, Component{}, Action{}, UsageDimension{}, Dispatch{}, Instance{}, Artifact{},
		MemberVolume{},
		ComponentCount{},
		Member{}, Node{}, Platform{}, Status{}, MemberUpdate{}, OperationError{}, OperationsPage{}, CancelRequest{},
		CancelResult{}, Observation{}, MemberObservation{}, ActionRequest{}, Requester{}, PosixIdentity{},
		ActionResult{}, UsagePage{},
		UsageRecord{}, ErrorBody{}, Work{}, PlanRequest{}, PlanAnswer{}, PlanReason{}, AddChange{}, LabelChange{},
		ReplaceChange{}, Choose{}, RoleObservation{},
		VersionChange{}, VersionConfig{},
	} {
		structs[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	enums = map[string][]string{
		"Kind": words(Kinds()), "State": words(States()), "MemberStatus": words(MemberStatuses()),
		"Health": words(Healths()),
		"Owner":  words(Owners()), "Risk": words(Risks()), "CancelOutcome": words(CancelOutcomes()),
		"Verdict": words(Verdicts()),
	}
	return structs, enums
}

func words[T ~string](list []T) []string {
	var out []string
	for _, word := range list {
		out = append(out, string(word))
	}
	return out
}

func TestDocumentAndTypesSayTheSame(t *testing.T) {
	t.Parallel()
	document := loadContract(t, contractFile)
	structs, enums := wireTypes()
	var names []string
	for name, schema := range document.Components.Schemas {
		names = append(names, name)
		require.NotEmpty(t, schema.Value.Description, name)
		if values, ok := enums[name]; ok {
			var written []string
			for _, value := range schema.Value.Enum {
				written = append(written, value.(string))
			}
			require.ElementsMatch(t, values, written, name)
			continue
		}
		require.Contains(t, structs, name, "schema without a type")
		sameFields(t, name, structs[name], schema.Value)
	}
	for name := range structs {
		require.Contains(t, names, name, "type without a schema")
	}
	for name := range enums {
		require.Contains(t, names, name, "enum without a schema")
	}
}

func sameFields(t *testing.T, name string, typ reflect.Type, schema *openapi3.Schema) {
	t.Helper()
	var fields, required []string
	for i := range typ.NumField() {
		field, option, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		fields = append(fields, field)
		if option != "omitempty" {
			required = append(required, field)
		}
		property := schema.Properties[field]
		require.NotNil(t, property, "%s.%s is not in the document", name, field)
		require.NotEmpty(t, property.Value.Description, "%s.%s", name, field)
		require.Equal(t, typeName(typ.Field(i).Type), schemaType(property), "%s.%s", name, field)
	}
	require.ElementsMatch(t, fields, slices.Collect(maps.Keys(schema.Properties)), name)
	require.ElementsMatch(t, required, schema.Required, "%s: required", name)
}

// typeName is how a Go type reads in the document.
func typeName(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[json.RawMessage](), typ.Kind() == reflect.Map:
		return "object"
	case typ == reflect.TypeFor[time.Time]():
		return "date-time"
	case typ.Kind() == reflect.Pointer:
		return typeName(typ.Elem())
	case typ.Kind() == reflect.Slice:
		return "array of " + typeName(typ.Elem())
	case typ.Name() == "string", typ.Name() == "bool":
		return map[string]string{"string": "string", "bool": "boolean"}[typ.Name()]
	case typ.Kind() == reflect.Int:
		return "integer"
	}
	return typ.Name()
}

func schemaType(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		return ref.Ref[strings.LastIndexByte(ref.Ref, '/')+1:]
	}
	schema := ref.Value
	switch {
	case len(schema.AllOf) == 1:
		return schemaType(schema.AllOf[0])
	case schema.Format == "date-time":
		return "date-time"
	case schema.Type.Is("array"):
		return "array of " + schemaType(schema.Items)
	}
	return schema.Type.Slice()[0]
}

func TestEverythingInTheDocumentIsDescribed(t *testing.T) {
	t.Parallel()
	document := loadContract(t, contractFile)
	for path, item := range document.Paths.Map() {
		for _, parameter := range item.Parameters {
			require.NotEmpty(t, parameter.Value.Description, path)
		}
		for method, operation := range item.Operations() {
			require.NotEmpty(t, operation.Summary, "%s %s", method, path)
			require.NotEmpty(t, operation.Description, "%s %s", method, path)
			require.NotEmpty(t, operation.OperationID, "%s %s", method, path)
			for _, parameter := range operation.Parameters {
				require.NotEmpty(t, parameter.Value.Description, "%s %s %s", method, path, parameter.Value.Name)
			}
			if operation.RequestBody != nil {
				require.NotEmpty(t, operation.RequestBody.Value.Description, "%s %s", method, path)
			}
			for status, response := range operation.Responses.Map() {
				require.NotEmpty(t, *response.Value.Description, "%s %s %s", method, path, status)
			}
		}
	}
	for _, tag := range document.Tags {
		require.NotEmpty(t, tag.Description, tag.Name)
	}
}

func TestContractHasNoBreakingChangeSinceItWasPublished(t *testing.T) {
	t.Parallel()
	require.Empty(t, breakingChanges(loadContract(t, publishedFile), loadContract(t, contractFile)))
}
