package graph

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxDenied bounds the refusals of one answer that are recorded: a document may ask for many fields.
const maxDenied = 20

// namedKey is how a field of the SDL says which key it asks for.
var namedKey = regexp.MustCompile(`Keys?: ([a-z<>_.|]+[a-z>])`)

// unnamedKey stands for the key of a field that names none, since it depends on what is asked for.
const unnamedKey = "depends on the object"

// denied records, apart from any transaction, the refusals of an answer that no verb has recorded: those of
// reads. What was allowed costs nothing.
func (r *Resolver) denied(ctx context.Context, response *graphql.Response) *graphql.Response {
	if response == nil || len(response.Errors) == 0 || !graphql.HasOperationContext(ctx) {
		return response
	}
	for i, one := range response.Errors {
		if i == maxDenied {
			break
		}
		if refused, ok := fault.As(one); ok && (refused.Code == fault.Forbidden || refused.Code == fault.NotFound) {
			r.deny(ctx, one, refused)
		}
	}
	return response
}

func (r *Resolver) deny(ctx context.Context, one *gqlerror.Error, refused *fault.Fault) {
	var known *audit.Recorded
	if errors.As(refused, &known) {
		return
	}
	field, object := asked(graphql.GetOperationContext(ctx), one.Path)
	if field == nil {
		return
	}
	denial := tx.Denial{Request: authz.Request(ctx), Action: field.Name, Key: keyOf(field), Code: string(refused.Code), ObjectID: object, At: r.DB.Now()}
	var cause *authz.Refusal
	if errors.As(refused, &cause) {
		denial.Actor, denial.TenantID, denial.Project = cause.Actor, cause.Object.TenantID, cause.Object.ProjectID
		denial.Key = cause.Keys[0].String()
	} else if credential, ok := tx.CredentialFrom(ctx); ok {
		denial.Actor = r.DB.Seen(credential)
	}
	if denial.Actor != nil { // the database refuses agents by itself, before it says who they are
		r.DB.Deny(denial)
	}
}

func keyOf(field *ast.Field) string {
	if field.Definition != nil {
		if found := namedKey.FindStringSubmatch(field.Definition.Description); found != nil {
			return found[1]
		}
	}
	return unnamedKey
}

// asked is the root field at the beginning of a path, and the object that its arguments name.
func asked(op *graphql.OperationContext, path ast.Path) (*ast.Field, string) {
	if len(path) == 0 || op.Operation == nil {
		return nil, ""
	}
	name, ok := path[0].(ast.PathName)
	if !ok {
		return nil, ""
	}
	for _, collected := range graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Query", "Mutation", "Subscription"}) {
		if collected.Alias == string(name) {
			return collected.Field, named(collected.ArgumentMap(op.Variables))
		}
	}
	return nil, ""
}

// named is the id among arguments: `id`, or what ends so, also within an input object.
func named(arguments map[string]any) string {
	for _, exact := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			text, ok := arguments[name].(string)
			if ok && len(text) <= maxNamed && (name == "id" || (!exact && strings.HasSuffix(name, "Id"))) {
				return text
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if input, ok := arguments[name].(map[string]any); ok {
			if found := named(input); found != "" {
				return found
			}
		}
	}
	return ""
}

// maxNamed bounds an object's id in the audit, in bytes.
const maxNamed = 100
