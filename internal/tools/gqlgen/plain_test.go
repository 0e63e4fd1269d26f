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
		{"Int", true, number, "Int"}, {"Int", false, types.NewPointer(number), "OptionalInt"},
		{"Int", true, types.Typ[types.Int64], ""},
		{"Float", true, types.Typ[types.Float64], "Float"}, {"Float", true, types.Typ[types.Int64], ""},
		{"Boolean", true, types.Typ[types.Bool], "Bool"},
		{"DateTime", true, instant, "Time"}, {"DateTime", false, types.NewPointer(instant), "OptionalTime"},
		{"JSON", false, document, "JSON"}, {"JSON", false, types.NewPointer(document), ""},
	} {
		gql := &ast.Type{NamedType: one.name, NonNull: one.required}
		require.Equal(t, one.want, writer(one.name, gql, one.goes), "%s %s", gql, one.goes)
	}
	required, optional := ast.NonNullNamedType("String", nil), ast.NamedType("String", nil)
	require.Equal(t, "Strings", writer("String", ast.NonNullListType(required, nil), types.NewSlice(text)))
	require.Equal(t, "OptionalStrings", writer("String", ast.ListType(required, nil), types.NewSlice(word)))
	require.Empty(t, writer("String", ast.NonNullListType(optional, nil), types.NewSlice(text)),
		"an element may be null")
	require.Empty(t, writer("Int", ast.NonNullListType(required, nil), types.NewSlice(number)))
	require.Empty(t, writer("String", ast.ListType(required, nil), types.NewPointer(types.NewSlice(text))))
}

func TestEveryRuleHasItsReason(t *testing.T) {
	t.Parallel()
	for name, one := range rules {
		require.NotEmpty(t, one.why, name)
	}
}

func TestAnInputIsReadWhereJSONReadsItAsTheExecutor(t *testing.T) {
	t.Parallel()
	field := func(name string, goes types.Type) *types.Var { return types.NewVar(0, nil, name, goes) }
	text, truth := types.Typ[types.String], types.Typ[types.Bool]
	word := named("lifecycle", "Status", text)
	for _, one := range []struct {
		goes types.Type
		want bool
	}{
		{text, true}, {word, true}, {types.NewPointer(truth), true}, {types.NewSlice(word), true},
		{types.Typ[types.Int], true},
		{types.Typ[types.Float64], false}, {types.NewSlice(truth), false},
		{named("time", "Time", types.NewStruct(nil, nil)), true},
		{types.NewPointer(named("time", "Time", types.NewStruct(nil, nil))), true},
		{named("x", "Pair", types.NewStruct(nil, nil)), false},
	} {
		of := &ast.Definition{Kind: ast.InputObject, Fields: ast.FieldList{{Name: "wanted"}}}
		made := types.NewPointer(named("x", "Input", types.NewStruct([]*types.Var{field("Wanted", one.goes),
			field("Own", text)}, nil)))
		require.Equal(t, one.want, input(of, made) != nil, "%s", one.goes)
	}
	of := &ast.Definition{Kind: ast.InputObject, Fields: ast.FieldList{{Name: "other"}}}
	made := named("x", "Input", types.NewStruct([]*types.Var{field("Wanted", text)}, nil))
	require.Nil(t, input(of, types.NewPointer(made)), "a field that the type does not have")
	of.Fields[0] = &ast.FieldDefinition{Name: "wanted", DefaultValue: &ast.Value{}}
	require.Nil(t, input(of, types.NewPointer(made)), "a default")
	require.Nil(t, input(&ast.Definition{Kind: ast.Scalar}, types.NewPointer(made)))
	require.Nil(t, input(&ast.Definition{Kind: ast.InputObject}, made), "a value is not the pointer that input wants")
	read, argument := reader(&ast.Definition{Kind: ast.InputObject}, made)
	require.Equal(t, "Object", read, "it must be given")
	require.Equal(t, made, argument)
}

func TestAParameterIsReadByItsType(t *testing.T) {
	t.Parallel()
	text, scalar := types.Typ[types.String], &ast.Definition{Kind: ast.Scalar}
	word := named("lifecycle", "Status", text)
	for _, one := range []struct {
		goes types.Type
		want string
		of   types.Type
	}{
		{named("domain/ids", "ID", text), "ID", nil}, {types.NewPointer(named("domain/ids", "ID", text)),
			"OptionalID", nil},
		{text, "Text", nil}, {types.Typ[types.Bool], "Bool", nil}, {types.Typ[types.Int], "", nil},
		{types.NewPointer(types.Typ[types.Int]), "OptionalInt", nil}, {types.NewPointer(text), "OptionalText", nil},
		{types.NewSlice(word), "Texts", word}, {types.NewSlice(types.Typ[types.Int]), "", nil},
		{types.NewPointer(types.Typ[types.Bool]), "OptionalBool", nil},
	} {
		read, of := reader(scalar, one.goes)
		require.Equal(t, one.want, read, "%s", one.goes)
		require.Equal(t, one.of, of, "%s", one.goes)
	}
}
