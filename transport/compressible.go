package transport

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Compressible reports whether an operation's answer may be compressed, though its length then reveals something of its
// content. That of a mutation may not, since it may show a credential for the only time, nor that of a document which
// selects a field of Config.Uncompressed.
func (e *Engine) Compressible(op *graphql.OperationContext) bool {
	if op.Operation.Operation == ast.Mutation {
		return false
	}
	if known := e.cache.get(op.RawQuery); known != nil && known.ast == op.Doc {
		return !known.plain
	}
	return !e.selectsPlain(op.Doc) // too long for the cache, or pushed out of it
}

// selectsPlain reports whether a validated document selects a field of Config.Uncompressed anywhere. Each fragment is
// looked at once.
func (e *Engine) selectsPlain(doc *ast.QueryDocument) bool {
	for _, each := range doc.Operations {
		if e.plain(each.SelectionSet) {
			return true
		}
	}
	return slices.ContainsFunc(doc.Fragments, func(each *ast.FragmentDefinition) bool {
		return e.plain(each.SelectionSet)
	})
}

func (e *Engine) plain(set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(each ast.Selection) bool {
		switch each := each.(type) {
		case *ast.Field:
			return each.ObjectDefinition != nil &&
				slices.Contains(e.config.Uncompressed, each.ObjectDefinition.Name+"."+each.Name) ||
				e.plain(each.SelectionSet)
		case *ast.InlineFragment:
			return e.plain(each.SelectionSet)
		default: // a spread: its fragment is looked at by itself
			return false
		}
	})
}
