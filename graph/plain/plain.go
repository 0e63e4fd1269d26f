// Package plain answers queries whose every field is in its tables, without the executor's context,
// closure and goroutine for each field: a document's selections are compiled once, and an answer is
// appended to one buffer. Whatever is not in the tables is the executor's, and so is every query
// that meets an error: it is run again there, so that errors have one shape and one place.
//
// The tables call the same resolvers and read the same models. What is answered is byte for byte
// what the executor answers; a test compares the two on generated documents.
package plain

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// ErrNot is what a field's function answers when it must be left to the executor.
var ErrNot = errors.New("not a plain query")

// Args are a field's arguments, with defaults filled in.
type Args map[string]any

// Type is the table of an object type.
type Type struct {
	// Name is the type's, and Implements the interfaces it has.
	Name       string
	Implements []string
	Fields     map[string]Field
}

// Field is how one field is answered. The constructors below make it.
type Field struct {
	leaf func(dst []byte, obj any) []byte
	of   func() *Type
	one  func(ctx context.Context, obj any, args Args) (any, error)
	many func(ctx context.Context, obj any, args Args) (List, error)
	// alone says that an element of a list must not have it: it would be read once an element.
	alone bool
}

// Alone is the field, for objects that are not elements of a list: the executor resolves elements
// beside each other, and this package one after the other.
func (f Field) Alone() Field {
	f.alone = true
	return f
}

// List is what a list field answers.
type List interface {
	Len() int
	At(i int) any
}

// Slice is a List of pointers.
type Slice[T any] []*T

// Len is how many there are.
func (s Slice[T]) Len() int { return len(s) }

// At is the i-th.
func (s Slice[T]) At(i int) any { return s[i] }

// Leaf is a scalar of a T.
func Leaf[T any](write func(dst []byte, obj *T) []byte) Field {
	return Field{leaf: func(dst []byte, obj any) []byte { return write(dst, obj.(*T)) }}
}

// One is an object of a T, null when it is nil. The table of its type is asked for when a document
// is compiled, so that types may refer to each other.
func One[T, U any](of func() *Type, get func(ctx context.Context, obj *T, args Args) (*U, error)) Field {
	return Field{of: of, one: func(ctx context.Context, obj any, args Args) (any, error) {
		found, err := get(ctx, obj.(*T), args)
		if found == nil || err != nil {
			return nil, err
		}
		return found, nil
	}}
}

// Many is a list of objects of a T.
func Many[T, U any](of func() *Type, get func(ctx context.Context, obj *T, args Args) ([]*U, error)) Field {
	return Field{of: of, many: func(ctx context.Context, obj any, args Args) (List, error) {
		found, err := get(ctx, obj.(*T), args)
		return Slice[U](found), err
	}}
}

// Executor answers plain queries.
type Executor struct {
	root  *Type
	plans plans
}

// Root is what the root's functions are given as their object.
type Root struct{}

// New makes an executor over the table of the query type.
func New(root *Type) *Executor { return &Executor{root: root} }

// Answer runs the operation of ctx; ok is false when it is the executor's.
func (e *Executor) Answer(ctx context.Context) (response *graphql.Response, ok bool) {
	op := graphql.GetOperationContext(ctx)
	if op.Operation.Operation != ast.Query {
		return nil, false
	}
	selected := e.plans.get(op, e.compile)
	if selected == nil {
		return nil, false
	}
	w := &writer{ctx: ctx, variables: op.Variables, dst: make([]byte, 0, selected.size())}
	if err := w.object(selected, &Root{}); err != nil {
		return nil, false
	}
	selected.answered(len(w.dst))
	return &graphql.Response{Data: json.RawMessage(w.dst)}, true
}
