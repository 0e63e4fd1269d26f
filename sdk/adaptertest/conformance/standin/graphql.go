package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// request is a GraphQL request over HTTP.
type request struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// graphql serves the public API: node tasks, reports and token renewal. A document may be written
// in any way GraphQL allows; a field of another part of the API is refused.
func (p *Platform) graphql(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	grant := p.find(token)
	if !bearer || grant == nil {
		w.WriteHeader(http.StatusUnauthorized)
		answer(w, nil, refusal{"UNAUTHENTICATED", "the token is not known, or was revoked"})
		return
	}
	var body request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, adapter.MaxBody))
	if err := decoder.Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, nil, refusal{"REQUEST_INVALID", "the body is not a GraphQL request"})
		return
	}
	data, err := p.execute(r.Context(), grant, body)
	answer(w, data, err)
}

// answer writes the answer of a request, in the error envelope of the public API where it was
// refused.
func answer(w io.Writer, data map[string]any, err error) {
	body := map[string]any{"data": data}
	if err != nil {
		code := "INVALID_ARGUMENT"
		var refused refusal
		if errors.As(err, &refused) {
			code = refused.code
		}
		body["errors"] = []any{
			map[string]any{"message": err.Error(), "extensions": map[string]any{"code": code, "retryable": false}},
		}
	}
	_ = json.NewEncoder(w).Encode(body) // an answer that is not read is the reader's affair
}

// execute runs every field of the document's operation in order.
func (p *Platform) execute(ctx context.Context, g *Grant, body request) (map[string]any, error) {
	document, err := parser.ParseQuery(&ast.Source{Input: body.Query})
	if err != nil {
		return nil, fmt.Errorf("the document is not GraphQL: %w", err)
	}
	operation := document.Operations.ForName(body.OperationName)
	if operation == nil {
		return nil, refusal{"INVALID_ARGUMENT", "the document does not contain the operation"}
	}
	data := map[string]any{}
	for _, field := range fieldsOf(operation.SelectionSet, document.Fragments) {
		args, err := arguments(field, body.Variables)
		if err != nil {
			return nil, err
		}
		value, err := p.resolve(ctx, g, field.Name, args)
		if err != nil {
			return nil, err
		}
		data[field.Alias] = project(value, field.SelectionSet, document.Fragments)
	}
	return data, nil
}

// fieldsOf returns the fields of a selection with its fragments opened. A fragment that is spread
// within itself is cut off by its depth.
func fieldsOf(set ast.SelectionSet, fragments ast.FragmentDefinitionList) []*ast.Field {
	return flatten(set, fragments, 0)
}

// flatten is fieldsOf at this depth of fragments.
func flatten(set ast.SelectionSet, fragments ast.FragmentDefinitionList, depth int) (fields []*ast.Field) {
	if depth > 20 {
		return nil
	}
	for _, selection := range set {
		switch one := selection.(type) {
		case *ast.Field:
			fields = append(fields, one)
		case *ast.InlineFragment:
			fields = append(fields, flatten(one.SelectionSet, fragments, depth+1)...)
		case *ast.FragmentSpread:
			if fragment := fragments.ForName(one.Name); fragment != nil {
				fields = append(fields, flatten(fragment.SelectionSet, fragments, depth+1)...)
			}
		}
	}
	return fields
}

// project returns the selected fields; a field that the stand-in does not know is null.
func project(value map[string]any, set ast.SelectionSet, fragments ast.FragmentDefinitionList) map[string]any {
	out := map[string]any{}
	for _, field := range fieldsOf(set, fragments) {
		inner, nested := value[field.Name].(map[string]any)
		if nested && len(field.SelectionSet) > 0 {
			out[field.Alias] = project(inner, field.SelectionSet, fragments)
			continue
		}
		out[field.Alias] = value[field.Name]
	}
	return out
}

// arguments returns a field's arguments as JSON.
func arguments(field *ast.Field, variables map[string]any) (json.RawMessage, error) {
	values := map[string]any{}
	for _, argument := range field.Arguments {
		value, err := argument.Value.Value(variables)
		if err != nil {
			return nil, refusal{"INVALID_ARGUMENT", argument.Name + ": " + err.Error()}
		}
		values[argument.Name] = value
	}
	return json.Marshal(values)
}

// resolve carries out one field.
func (p *Platform) resolve(ctx context.Context, g *Grant, field string, raw json.RawMessage) (map[string]any, error) {
	var args struct {
		ID          string
		TaskID      string
		WaitSeconds int
		Input       json.RawMessage
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, refusal{"INVALID_ARGUMENT", field + ": the arguments are not of the expected shape"}
	}
	switch field {
	case "runNodeTask":
		var input taskInput
		if err := json.Unmarshal(args.Input, &input); err != nil {
			return nil, refusal{"INVALID_ARGUMENT", "input is not of the expected shape: " + err.Error()}
		}
		return p.runTask(g, input)
	case "nodeTask":
		return p.awaitTask(ctx, g, args.ID, min(time.Duration(args.WaitSeconds)*time.Second, 20*time.Second))
	case "cancelNodeTask":
		return p.cancelTask(ctx, g, args.TaskID)
	case "reportOperation":
		return p.report(g, args.Input)
	case "renewOperationToken":
		fresh, err := p.renew(g)
		if err != nil {
			return nil, err
		}
		return map[string]any{"token": fresh.token, "expiresAt": fresh.Access().TokenExpiresAt}, nil
	}
	p.mu.Lock()
	own := p.answers[field]
	p.mu.Unlock()
	if own != nil {
		return own(args.Input)
	}
	return nil, refusal{
		"INVALID_ARGUMENT",
		fmt.Sprintf("the stand-in platform serves node tasks, reports and token renewal, but not %q", field),
	}
}

// report keeps an adapter's report of its operation.
func (p *Platform) report(g *Grant, raw json.RawMessage) (map[string]any, error) {
	var input struct{ OperationID string }
	if json.Unmarshal(raw, &input) != nil || !g.open && input.OperationID != g.operation {
		return nil, refusal{"NOT_FOUND", "the token is not for this operation"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.reports) >= maxReports {
		p.reports = p.reports[1:]
	}
	p.reports = append(p.reports, raw)
	now := time.Now().UTC()
	return map[string]any{
		"__typename": "Operation", "id": input.OperationID, "instanceId": g.instance, "state": "RUNNING",
		"createdAt": now, "deadline": now.Add(time.Hour),
	}, nil
}
