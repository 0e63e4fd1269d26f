package read

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Wanted returns which neighbours of an instance the selection contains, so that they are read in the one round trip of
// the instance. Arguments that are refused are left to their own field.
func Wanted(ctx context.Context) instance.Want {
	var want instance.Want
	if !graphql.HasOperationContext(ctx) {
		return want
	}
	want.Brief = briefDetail(ctx)
	for _, field := range graphql.CollectFieldsCtx(ctx, nil) {
		switch field.Name {
		case "members":
			want.Members = pageArgs(ctx, field, StandardPage, page.Max)
			inside := selected(ctx, field, "edges", "node")
			want.Nodes = want.Nodes || inside["node"]
			want.Allocations = want.Allocations || inside["allocation"]
		case "events":
			want.Events = pageArgs(ctx, field, EventPage, event.MaxPage)
		case "lastOperation":
			want.LastOperation = true
			want.Steps = selected(ctx, field)["steps"]
		case "allocations":
			want.Allocations = true
		case "manifest", "actions", "endpoints":
			want.Manifest = true
		}
	}
	return want
}

// ListWants reports whether the selection contains a field of the nodes of the connection that is being resolved.
func ListWants(ctx context.Context, name string) bool {
	if !graphql.HasOperationContext(ctx) {
		return false
	}
	return selected(ctx, graphql.GetFieldContext(ctx).Field, "edges", "node")[name]
}

// selected returns the names of the fields below a field, after walking down a path of fields.
func selected(ctx context.Context, field graphql.CollectedField, path ...string) map[string]bool {
	op := graphql.GetOperationContext(ctx)
	fields := graphql.CollectFields(op, field.Selections, nil)
	for _, step := range path {
		var below []graphql.CollectedField
		for _, f := range fields {
			if f.Name == step {
				below = append(below, graphql.CollectFields(op, f.Selections, nil)...)
			}
		}
		fields = below
	}
	names := make(map[string]bool, len(fields))
	for _, f := range fields {
		names[f.Name] = true
	}
	return names
}

// pageArgs returns first and after of a field, and nil when they are refused.
func pageArgs(ctx context.Context, field graphql.CollectedField, standard, most int) *page.Args {
	arguments := field.ArgumentMap(graphql.GetOperationContext(ctx).Variables)
	first, err := intArgument(arguments["first"])
	if err != nil {
		return nil
	}
	var after *string
	if text, ok := arguments["after"].(string); ok {
		after = &text
	}
	args, err := page.Of(first, after, standard, most)
	if err != nil {
		return nil
	}
	return &args
}

// intArgument returns an optional integer.
func intArgument(v any) (*int, error) {
	if v == nil {
		return nil, nil
	}
	n, err := graphql.UnmarshalInt(v)
	return &n, err
}
