package plain

import (
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Args are a field's arguments, with defaults filled in.
type Args map[string]any

// Reader reads arguments. Err is ErrNot after one that is not as expected: the executor refuses it.
type Reader struct {
	args Args
	Err  error
}

// Read returns a reader of arguments.
func Read(args Args) *Reader { return &Reader{args: args} }

// ID returns an id.
func (r *Reader) ID(name string) (id ids.ID) {
	if id.UnmarshalGQL(r.args[name]) != nil {
		r.Err = ErrNot
	}
	return id
}

// OptionalInt returns a number, and nil where there is none.
func (r *Reader) OptionalInt(name string) *int {
	given := r.args[name]
	if given == nil {
		return nil
	}
	n, err := graphql.UnmarshalInt(given)
	if err != nil {
		r.Err = ErrNot
	}
	return &n
}

// OptionalText returns a string, and nil where there is none.
func (r *Reader) OptionalText(name string) *string {
	switch given := r.args[name].(type) {
	case nil:
		return nil
	case string:
		return &given
	}
	r.Err = ErrNot
	return nil
}

// Texts returns a list of strings, and nil where there is none.
func Texts[T ~string](r *Reader, name string) []T {
	given, ok := r.args[name].([]any)
	if !ok && r.args[name] != nil {
		r.Err = ErrNot
	}
	if given == nil {
		return nil
	}
	out := make([]T, len(given))
	for i, one := range given {
		text, ok := one.(string)
		if !ok {
			r.Err = ErrNot
		}
		out[i] = T(text)
	}
	return out
}

// Input returns an input object, and nil where there is none. It is for objects of texts, truth values, whole numbers and
// lists of texts alone, which JSON and the executor read alike; their values have been coerced to the schema's types.
func Input[T any](r *Reader, name string) *T {
	given := r.args[name]
	if given == nil {
		return nil
	}
	out := new(T)
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		r.Err = ErrNot
	}
	return out
}

// Absent makes a query that gives the argument the executor's.
func (r *Reader) Absent(name string) {
	if r.args[name] != nil {
		r.Err = ErrNot
	}
}
