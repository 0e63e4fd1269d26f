// Package guard bounds a GraphQL document before anything expands it.
//
// A few kilobytes of GraphQL can cost seconds of validation or select millions of
// rows: fragments that spread each other twice double at every step, one field
// repeated three thousand times is compared pair by pair, and nested connections
// multiply. The guard works in three steps, each cheap next to the one it protects:
//
//	Lex       bytes, tokens, nesting, aliases, root fields, spreads, directives   before parsing
//	Analyze   fragments expanded with a memo, repeated fields, introspection      before validation
//	Plan.Cost what the operation may request, page sizes and variables included    before execution
//
// Every step is linear in the document, or in the bound that the step before it set.
// An error names the bound and the place; it never repeats a part of the document.
package guard
