package plain

import (
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/scalar"
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

// OptionalID returns an id, and nil without one.
func (r *Reader) OptionalID(name string) *ids.ID { return optional(r, name, r.ID) }

// optional reads an argument that may be left out.
func optional[T any](r *Reader, name string, read func(name string) T) *T {
	if r.args[name] == nil {
		return nil
	}
	value := read(name)
	return &value
}

// Text returns a string.
func (r *Reader) Text(name string) string {
	text, ok := r.args[name].(string)
	if !ok {
		r.Err = ErrNot
	}
	return text
}

// Bool returns a truth value.
func (r *Reader) Bool(name string) bool {
	is, ok := r.args[name].(bool)
	if !ok {
		r.Err = ErrNot
	}
	return is
}

// OptionalBool returns a truth value, and nil without one.
func (r *Reader) OptionalBool(name string) *bool { return optional(r, name, r.Bool) }

// OptionalInt returns a number, and nil without one.
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

// OptionalText returns a string, and nil without one.
func (r *Reader) OptionalText(name string) *string { return optional(r, name, r.Text) }

// Texts returns a list of strings, and nil without one.
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

// Object is Input for an input object that is required.
func Object[T any](r *Reader, name string) (out T) {
	if found := Input[T](r, name); found != nil {
		return *found
	}
	r.Err = ErrNot
	return out
}

// asInputs reads ids and instants as the executor does, and finds fields by names that differ in case.
var asInputs = json.JoinOptions(json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFunc(func(text []byte, id *ids.ID) error {
		var given string
		if err := json.Unmarshal(text, &given); err != nil {
			return err
		}
		return id.UnmarshalGQL(given)
	}),
	json.UnmarshalFunc(func(text []byte, at *time.Time) (err error) {
		var given string
		if err := json.Unmarshal(text, &given); err != nil {
			return err
		}
		*at, err = scalar.UnmarshalDateTime(given)
		return err
	}),
)))

// Input returns an input object, and nil without one. It is for objects of texts, truth values, whole numbers,
// ids, instants and lists of texts alone; their values have been coerced to the schema's types.
func Input[T any](r *Reader, name string) *T {
	given := r.args[name]
	if given == nil {
		return nil
	}
	out := new(T)
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, out, asInputs)
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
