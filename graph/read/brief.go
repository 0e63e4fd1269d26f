package read

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// part is a place of an answer whose rows may be read in part.
type part struct {
	at     string // the field that leads there, by its path; empty for the object that is resolved
	nodes  string // the path from there to the objects; empty where it leads to them itself
	fields rows.Fields
	leads  map[string]bool // the fields below which others are of the same row
}

func of(at, nodes string, fields rows.Fields) part { return part{at, nodes, fields, fields.Leading()} }

// The parts of an instance's page and of a list of instances, those within others first.
var (
	pageParts = []part{
		of("lastOperation.steps", "", operation.StepFields),
		of("lastOperation", "", operation.BriefFields),
		of("members", "edges.node", instance.MemberFields),
		of("events", "edges.node", event.BriefFields),
		of("", "", instance.PageFields),
	}
	listParts = []part{
		of("edges.node.lastOperation", "", operation.BriefFields),
		of("", "edges.node", instance.BriefFields),
	}
)

// briefDetail returns for which rows a part is enough, for the instance that is being resolved.
func briefDetail(ctx context.Context) instance.Brief {
	whole := wholeOf(graphql.GetFieldContext(ctx).Field.Selections, pageParts)
	return instance.Brief{Steps: !whole[0], LastOperation: !whole[1], Members: !whole[2], Events: !whole[3],
		Instance: !whole[4]}
}

// BriefList reports whether a part of each instance, and of its last operation, is enough for the list being resolved.
func BriefList(ctx context.Context) (instances, operations bool) {
	if !graphql.HasOperationContext(ctx) {
		return false, false
	}
	whole := wholeOf(graphql.GetFieldContext(ctx).Field.Selections, listParts)
	return !whole[1], !whole[0]
}

// wholeOf returns which of the parts show a field that is not among theirs, so that their rows are read whole. Every
// field in a fragment counts, whether it will be answered or not.
func wholeOf(set ast.SelectionSet, parts []part) []bool {
	whole := make([]bool, len(parts))
	walk(set, "", func(path string) bool {
		for i, p := range parts {
			name, ok := below(path, p.at)
			if !ok {
				continue
			}
			if name, ok = below(name, p.nodes); !ok || name == "" {
				return true // on the way to the objects
			}
			_, listed := p.fields[name]
			whole[i] = whole[i] || !listed
			return p.leads[name]
		}
		return false
	})
	return whole
}

// below returns the part of a path below a field; empty for the field itself.
func below(path, field string) (rest string, ok bool) {
	if field == "" {
		return path, true
	}
	rest, ok = strings.CutPrefix(path, field)
	if rest == "" {
		return "", ok
	}
	return strings.CutPrefix(rest, ".")
}

// walk calls visit with the path of every selected field, and goes on below it where visit returns true.
func walk(set ast.SelectionSet, above string, visit func(path string) bool) {
	for _, one := range set {
		switch one := one.(type) {
		case *ast.Field:
			if path := above + one.Name; one.Name != "__typename" && visit(path) && len(one.SelectionSet) > 0 {
				walk(one.SelectionSet, path+".", visit)
			}
		case *ast.InlineFragment:
			walk(one.SelectionSet, above, visit)
		case *ast.FragmentSpread:
			if one.Definition != nil {
				walk(one.Definition.SelectionSet, above, visit)
			}
		}
	}
}
