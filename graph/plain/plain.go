// Package plain answers queries whose every field is in its tables, without the executor's context, closure and
// goroutine for each field: a document's selections are compiled once, and an answer is appended to one buffer. The
// executor answers every query with a field that is not in the tables, and repeats every query that meets an error, so
// that errors have one shape and one place. Fields with loaders are read for all objects beside each other at once.
//
// The tables are generated (graph/generated/plain) from the schema and from how gqlgen bound it, so they call the same
// resolvers and read the same models. An answer is byte for byte the executor's; a test compares the two on generated
// documents.
package plain

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// ErrNot is returned by the function of a field that the executor must answer.
var ErrNot = errors.New("not a plain query")

// Type is the table of an object type.
type Type struct {
	// Name is the type's name, and Implements are its interfaces.
	Name       string
	Implements []string
	Fields     map[string]Field
}

// Field is how one field is answered. The constructors below make it.
type Field struct {
	leaf func(dst []byte, obj any) []byte // of a scalar that stands in the object
	// get returns the value of any other field: of a scalar what write writes, else an object of the type, or nil, or a
	// List of those.
	get   func(ctx context.Context, obj any, args Args) (any, error)
	write func(dst []byte, value any) []byte
	of    func() *Type
	many  bool
	// alone marks fields that would cost one query per list element; inside lists the query falls back to the executor.
	alone bool
	// gathered marks fields whose loaders serve all elements of a list in one query, if they are read at once.
	gathered bool
	// together marks fields that are read in the round trip of the object above, unless a loader reads that object.
	together bool
}

// Alone returns the field for objects that are not elements of a list.
func (f Field) Alone() Field {
	f.alone = true
	return f
}

// Gathered returns the field for elements of a list for all of which it is read at once, before any is written.
func (f Field) Gathered() Field {
	f.gathered = true
	return f
}

// Together returns the field for objects that are read with what it leads to, and gathered below those that are not.
func (f Field) Together() Field {
	f.together = true
	return f
}

// List is the value of a list field.
type List interface {
	Len() int
	At(i int) any
}

// Slice is a List of pointers.
type Slice[T any] []*T

// Len returns the number of elements.
func (s Slice[T]) Len() int { return len(s) }

// At returns the i-th element.
func (s Slice[T]) At(i int) any { return s[i] }

// Leaf returns the field of a scalar of a T.
func Leaf[T any](write func(dst []byte, obj *T) []byte) Field {
	return Field{leaf: func(dst []byte, obj any) []byte { return write(dst, obj.(*T)) }}
}

// Value returns the field of a scalar that a resolver makes of a T.
func Value[T, V any](get func(ctx context.Context, obj *T, args Args) (V, error),
	write func(dst []byte, value V) []byte) Field {
	return Field{
		get:   func(ctx context.Context, obj any, args Args) (any, error) { return get(ctx, obj.(*T), args) },
		write: func(dst []byte, value any) []byte { return write(dst, value.(V)) },
	}
}

// One returns the field of an object of a T, null when it is nil. The table of its type is looked up when a document is
// compiled, so that types may refer to each other.
func One[T, U any](of func() *Type, get func(ctx context.Context, obj *T, args Args) (*U, error)) Field {
	return Field{of: of, get: func(ctx context.Context, obj any, args Args) (any, error) {
		found, err := get(ctx, obj.(*T), args)
		if found == nil || err != nil {
			return nil, err
		}
		return found, nil
	}}
}

// Many returns the field of a list of objects of a T.
func Many[T, U any](of func() *Type, get func(ctx context.Context, obj *T, args Args) ([]*U, error)) Field {
	return Field{of: of, many: true, get: func(ctx context.Context, obj any, args Args) (any, error) {
		found, err := get(ctx, obj.(*T), args)
		return Slice[U](found), err
	}}
}

// Executor answers plain queries.
type Executor struct {
	root  *Type
	plans plans
}

// Root is the object of the fields of the query type.
type Root struct{}

// New returns an executor over the table of the query type.
func New(root *Type) *Executor { return &Executor{root: root} }

// Answer runs the operation of ctx. It reports false for one that the executor must answer.
func (e *Executor) Answer(ctx context.Context) (response *graphql.Response, ok bool) {
	plan := e.Plan(ctx)
	if plan == nil {
		return nil, false
	}
	return plan.Answer(ctx)
}

// Plan returns how the operation of ctx is answered; nil for one that the executor must answer.
func (e *Executor) Plan(ctx context.Context) *Plan {
	op := graphql.GetOperationContext(ctx)
	if op.Operation.Operation != ast.Query {
		return nil
	}
	return e.plans.get(op, e.compile)
}

// Plan is how one operation of a document is answered. It stays the same for as long as it is kept, whatever the
// variables.
type Plan struct {
	root  *selection
	edges []string
}

// Answer runs the operation of ctx, which must be the plan's. It reports false for one that the executor must answer.
func (p *Plan) Answer(ctx context.Context) (response *graphql.Response, ok bool) {
	variables := graphql.GetOperationContext(ctx).Variables
	w := &writer{ctx: ctx, variables: variables, dst: make([]byte, 0, p.root.size())}
	if err := guarded(func() error { return w.object(p.root, &Root{}, nil, 0) }); err != nil {
		return nil, false
	}
	p.root.answered(len(w.dst))
	return &graphql.Response{Data: json.RawMessage(w.dst)}, true
}

// Sole returns the name and the arguments of the one field of the query type that the operation selects; not ok where
// it selects several, or one that is not an object.
func (p *Plan) Sole(variables map[string]any) (name string, args Args, ok bool) {
	if len(p.root.steps) != 1 || p.root.steps[0].below == nil {
		return "", nil, false
	}
	asked := p.root.steps[0].asked
	return asked.Name, asked.ArgumentMap(variables), true
}

// Gathers reports whether fields are resolved concurrently, by several goroutines.
func (p *Plan) Gathers() bool { return p.root.ahead }

// Edges returns the selected fields whose value is not in the object itself, each as Type.field: those that lead to
// other objects, and scalars that a resolver computes.
func (p *Plan) Edges() []string { return p.edges }
