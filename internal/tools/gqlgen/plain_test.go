package main

import (
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
)

// named returns a named type over a basic one, and external one over a struct, of the path's package.
func named(path, name string, under types.Type) types.Type {
	return types.NewNamed(types.NewTypeName(0, types.NewPackage(path, path), name, nil), under, nil)
}

func TestALeafIsWrittenAsItsTypesAre(t *testing.T) {
	t.Parallel()
	text, number := types.Typ[types.String], types.Typ[types.Int]
	instant := named("time", "Time", types.NewStruct(nil, nil))
	document := named("encoding/json", "RawMessage", types.NewSlice(types.Typ[types.Byte]))
	word := named("lifecycle", "Health", text)
	for _, one := range []struct {
		name     string
		required bool
		goes     types.Type
		want     string
	}{
		{"String", true, text, "String"}, {"Health", true, word, "String"}, {"String", false, text, "String"},
		{"String", false, types.NewPointer(word), "OptionalString"},
		{"String", true, types.NewPointer(text), ""}, // the executor refuses a nil
		{"Int", true, number, "Int"}, {"Int", false, types.NewPointer(number), ""}, {"Int", true, types.Typ[types.Int64], ""},
		{"Float", true, types.Typ[types.Float64], ""}, {"Boolean", true, types.Typ[types.Bool], "Bool"},
		{"DateTime", true, instant, "Time"}, {"DateTime", false, types.NewPointer(instant), "OptionalTime"},
		{"JSON", false, document, "JSON"}, {"JSON", false, types.NewPointer(document), ""},
	} {
		gql := &ast.Type{NamedType: one.name, NonNull: one.required}
		require.Equal(t, one.want, writer(one.name, gql, one.goes), "%s %s", gql, one.goes)
	}
	require.Empty(t, writer("String", ast.NonNullListType(ast.NonNullNamedType("String", nil), nil), types.NewSlice(text)))
}

func TestEveryRuleHasItsReason(t *testing.T) {
	t.Parallel()
	for name, one := range rules {
		require.NotEmpty(t, one.why, name)
	}
}
