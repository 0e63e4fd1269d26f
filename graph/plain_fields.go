package graph

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/graph/scalar"
)

// The leaves of the plain tables, by what they read of a T.

func text[T any, S ~string](get func(*T) S) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte { return plain.String(dst, get(obj)) })
}

func optional[T any, S ~string](get func(*T) *S) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte { return plain.Optional(dst, get(obj)) })
}

func number[T any](get func(*T) int) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte { return plain.Int(dst, get(obj)) })
}

func truth[T any](get func(*T) bool) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte { return plain.Bool(dst, get(obj)) })
}

func instant[T any](get func(*T) time.Time) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte { return plain.Time(dst, get(obj), scalar.Layout) })
}

func moment[T any](get func(*T) *time.Time) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte {
		if at := get(obj); at != nil {
			return plain.Time(dst, *at, scalar.Layout)
		}
		return append(dst, "null"...)
	})
}

// document is stored JSON, written as it is; an empty one is null.
func document[T any](get func(*T) json.RawMessage) plain.Field {
	return plain.Leaf(func(dst []byte, obj *T) []byte {
		stored := get(obj)
		if len(bytes.TrimSpace(stored)) == 0 {
			return append(dst, "null"...)
		}
		return append(dst, stored...)
	})
}

// The arguments of plain fields. What is not as expected is the executor's to refuse.

func idArg(args plain.Args, name string) (ids.ID, error) {
	var id ids.ID
	if id.UnmarshalGQL(args[name]) != nil {
		return "", plain.ErrNot
	}
	return id, nil
}

// pageArg reads first and after.
func pageArg(args plain.Args) (first *int, after *string, err error) {
	if first, err = intArgument(args["first"]); err != nil {
		return nil, nil, plain.ErrNot
	}
	switch given := args["after"].(type) {
	case nil:
	case string:
		after = &given
	default:
		return nil, nil, plain.ErrNot
	}
	return first, after, nil
}

// intArgument returns an optional integer.
func intArgument(v any) (*int, error) {
	if v == nil {
		return nil, nil
	}
	n, err := graphql.UnmarshalInt(v)
	return &n, err
}
