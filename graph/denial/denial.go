// Package denial shows refusals to callers, and records in the audit what reads refused. Verbs record their own
// refusals in their transactions; what is left are the refusals in a response that no verb has recorded.
package denial

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

// maxDenied bounds the refusals of one response that are recorded: a document may have many fields.
const maxDenied = 20

// maxNamed bounds an object's id in the audit, in bytes.
const maxNamed = 100

// namedKey matches the key that a field requires, as its description in the SDL states it.
var namedKey = regexp.MustCompile(`Keys?: ([a-z<>_.|]+[a-z>])`)

// unnamedKey replaces the key of a field whose description names none, since the key depends on the object.
const unnamedKey = "depends on the object"

// Record records, outside of any transaction, the refusals of a response that no verb has recorded: those of reads. It
// returns the response. A response without refusals costs nothing.
func Record(ctx context.Context, db *tx.DB, response *graphql.Response) *graphql.Response {
	if response == nil || len(response.Errors) == 0 || !graphql.HasOperationContext(ctx) {
		return response
	}
	for i, one := range response.Errors {
		if i == maxDenied {
			break
		}
		if refused, ok := fault.As(one); ok && (refused.Code == fault.Forbidden || refused.Code == fault.NotFound) {
			deny(ctx, db, one, refused)
		}
	}
	return response
}

// deny records one refusal, unless a verb has recorded it.
func deny(ctx context.Context, db *tx.DB, one *gqlerror.Error, refused *fault.Fault) {
	var known *audit.Recorded
	if errors.As(refused, &known) {
		return
	}
	field, object := asked(graphql.GetOperationContext(ctx), one.Path)
	if field == nil {
		return
	}
	note(ctx, db, refused, field.Name, keyOf(field), object)
}

// Note records a refusal of a request that is not GraphQL, unless a verb has recorded it: the action and its object.
func Note(ctx context.Context, db *tx.DB, err error, action, object string) {
	var known *audit.Recorded
	refused, ok := fault.As(err)
	if ok && (refused.Code == fault.Forbidden || refused.Code == fault.NotFound) && !errors.As(refused, &known) {
		note(ctx, db, refused, action, unnamedKey, object)
	}
}

// note records a refusal, with its caller as far as that is known.
func note(ctx context.Context, db *tx.DB, refused *fault.Fault, action, key, object string) {
	denial := tx.Denial{
		Request: authz.Request(ctx), Action: action, Key: key, Code: string(refused.Code), ObjectID: object,
		At: db.Now(),
	}
	if len(denial.ObjectID) > maxNamed {
		denial.ObjectID = denial.ObjectID[:maxNamed]
	}
	var cause *authz.Refusal
	if errors.As(refused, &cause) {
		denial.Actor, denial.TenantID, denial.Project = cause.Actor, cause.Object.TenantID, cause.Object.ProjectID
		denial.Key = cause.Keys[0].String()
	} else if credential, ok := tx.CredentialFrom(ctx); ok {
		denial.Actor = db.Seen(credential)
	}
	if denial.Actor != nil { // the database refuses agents before it returns who they are
		db.Deny(denial)
	}
}

// keyOf returns the key that a field requires.
func keyOf(field *ast.Field) string {
	if field.Definition != nil {
		if found := namedKey.FindStringSubmatch(field.Definition.Description); found != nil {
			return found[1]
		}
	}
	return unnamedKey
}

// asked returns the root field at the beginning of a path, and the id of the object that its arguments name.
func asked(op *graphql.OperationContext, path ast.Path) (*ast.Field, string) {
	if len(path) == 0 || op.Operation == nil {
		return nil, ""
	}
	name, ok := path[0].(ast.PathName)
	if !ok {
		return nil, ""
	}
	roots := []string{"Query", "Mutation", "Subscription"}
	for _, collected := range graphql.CollectFields(op, op.Operation.SelectionSet, roots) {
		if collected.Alias == string(name) {
			return collected.Field, named(collected.ArgumentMap(op.Variables))
		}
	}
	return nil, ""
}

// named returns the id among arguments: `id`, or one whose name ends with Id, also within an input object.
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
