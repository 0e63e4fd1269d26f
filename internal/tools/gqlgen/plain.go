package main

import (
	_ "embed"
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/vektah/gqlparser/v2/ast"
)

// plainFile is the file that the plugin writes.
const plainFile = "graph/generated/plain/tables.go"

//go:embed plain.gotpl
var plainTemplate string

// plainPlugin writes the tables of graph/plain from the schema and from how gqlgen bound its fields, so that a field is
// written once: in the SDL.
type plainPlugin struct{}

// Name returns the plugin's name.
func (plainPlugin) Name() string { return "plain" }

// GenerateCode writes the tables.
func (plainPlugin) GenerateCode(data *codegen.Data) error {
	b := &builder{data: data, tables: map[string]*table{}, used: map[string]bool{}}
	if err := b.build(); err != nil {
		return err
	}
	return templates.Render(templates.Options{
		PackageName: "plain", Filename: plainFile, Template: plainTemplate, GeneratedHeader: true,
		Packages: data.Config.Packages,
		PackageDoc: "// Package plain holds the tables of the queries that graph/plain answers, written from the " +
			"contract.",
		Funcs: template.FuncMap{"join": strings.Join},
		Data:  slices.SortedFunc(maps.Values(b.tables), byName),
	})
}

// table is a type with the fields that are answered without the executor.
type table struct {
	*codegen.Object
	Fields []field
	// Left are the fields that remain the executor's.
	Left []string
}

// UsesResolver reports whether a field calls the type's resolver.
func (t *table) UsesResolver() bool {
	return slices.ContainsFunc(t.Fields, func(f field) bool { return f.Call })
}

// byName orders tables.
func byName(x, y *table) int { return strings.Compare(x.Name, y.Name) }

// field is how one field is answered.
type field struct {
	Name string
	// Read is the Go expression of the value: on obj, or with Call the method of the resolver.
	Read string
	Call bool
	// Write is the function of graph/plain that writes a leaf.
	Write string
	// Of is the type of an object or of a list's elements, and Elem its Go type.
	Of         string
	Elem       types.Type
	Many       bool
	Fails      bool       // Read has a second result, the error
	Mark       string     // the method of graph/plain's Field that says how it is resolved
	Value      types.Type // what a resolver makes a leaf from; nil for any other field
	Parameters []parameter
}

// parameter is an argument of a resolver.
type parameter struct {
	Name, Var string
	Read      string     // the function of graph/plain, "" for one that a plain query must not give
	Of        types.Type // its type argument, nil for a method of the arguments' reader
}

// builder collects the tables that the roots lead to.
type builder struct {
	data   *codegen.Data
	tables map[string]*table
	used   map[string]bool // rules
}

// build fills tables. It fails when a root or a rule names a field that cannot be answered plainly.
func (b *builder) build() error {
	query := &table{Object: b.data.QueryRoot}
	b.tables[query.Name] = query
	for _, name := range roots {
		found := b.data.QueryRoot.Definition.Fields.ForName(name)
		if found == nil {
			return fmt.Errorf("the schema has no query %s", name)
		}
		for _, f := range b.data.QueryRoot.Fields {
			if f.Name != name {
				continue
			}
			out, ok := b.field(f, rule{})
			if !ok {
				return fmt.Errorf("the query %s cannot be answered plainly", name)
			}
			query.Fields = append(query.Fields, out)
		}
	}
	for name := range rules {
		if !b.used[name] {
			return fmt.Errorf("the rule of %s is not used: no plain type has such a field with a resolver", name)
		}
	}
	return nil
}

// table adds the table of a type and of all types that it leads to.
func (b *builder) table(name string) bool {
	if b.tables[name] != nil {
		return true
	}
	object := b.data.Objects.ByName(name)
	if object == nil {
		return false
	}
	out := &table{Object: object}
	b.tables[name] = out
	for _, f := range object.Fields {
		if strings.HasPrefix(f.Name, "__") {
			continue
		}
		key := name + "." + f.Name
		how, ruled := rules[key]
		if f.IsResolver && !ruled {
			out.Left = append(out.Left, f.Name)
			continue
		}
		if plain, ok := b.field(f, how); ok {
			b.used[key] = b.used[key] || f.IsResolver
			out.Fields = append(out.Fields, plain)
		} else {
			out.Left = append(out.Left, f.Name)
		}
	}
	return true
}

// marks are what the tables say of fields by how they are answered.
var marks = map[int]string{together: "Together", gathered: "Gathered", alone: "Alone"}

// field returns how a field is answered, and false for one that only the executor can answer.
func (b *builder) field(f *codegen.Field, how rule) (field, bool) {
	out := field{Name: f.Name, Mark: marks[how.how], Call: f.IsResolver}
	out.Fails = out.Call || (f.GoFieldType == codegen.GoFieldMethod && !f.NoErr)
	switch {
	case f.IsResolver:
		out.Read = f.GoFieldName
	case f.GoFieldType == codegen.GoFieldMethod && !f.MethodHasContext && !f.VOkFunc && len(f.Args) == 0:
		out.Read = "obj." + f.GoFieldName + "()"
	case f.GoFieldType == codegen.GoFieldVariable:
		out.Read = "obj." + f.GoFieldName
	default:
		return field{}, false
	}
	if f.TypeReference.Definition.Kind == ast.Object {
		return out, b.object(f, &out)
	}
	out.Write = writer(f.TypeReference.Definition.Name, f.Type, f.TypeReference.GO)
	if f.IsResolver {
		out.Value = f.TypeReference.GO
		return out, out.Write != "" && parameters(f, &out)
	}
	return out, out.Write != "" && out.Write != "Float" && !out.Fails // a stored fraction may be none that JSON has
}

// parameters completes a field by its arguments, and reports whether a plain query can give them.
func parameters(f *codegen.Field, out *field) bool {
	for _, argument := range f.Args {
		one := parameter{Name: argument.Name, Var: argument.VarName}
		one.Read, one.Of = reader(argument.TypeReference.Definition, argument.TypeReference.GO)
		if one.Read == "" && argument.Type.NonNull {
			return false
		}
		out.Parameters = append(out.Parameters, one)
	}
	return true
}

// object completes a field that is an object or a list of objects.
func (b *builder) object(f *codegen.Field, out *field) bool {
	holder := f.TypeReference.GO
	if list, ok := holder.(*types.Slice); ok {
		if !f.Type.NonNull || !f.Type.Elem.NonNull {
			return false
		}
		out.Many, holder = true, list.Elem()
	}
	pointer, ok := holder.(*types.Pointer)
	if !ok {
		return false
	}
	if !parameters(f, out) {
		return false
	}
	out.Of, out.Elem = f.TypeReference.Definition.Name, pointer.Elem()
	return b.table(out.Of)
}

// writer returns the function of graph/plain that writes a leaf, and "" where it has no such function.
func writer(name string, gql *ast.Type, goes types.Type) string {
	pointer, optional := goes.(*types.Pointer)
	if optional {
		goes = pointer.Elem()
	}
	if gql.Elem != nil {
		slice, ok := goes.(*types.Slice)
		switch {
		case optional || !ok || !isText(slice.Elem()) || !gql.Elem.NonNull || gql.Elem.Elem != nil:
			return ""
		case gql.NonNull:
			return "Strings"
		}
		return "OptionalStrings"
	}
	if optional && gql.NonNull { // the executor refuses a nil
		return ""
	}
	basic, _ := goes.Underlying().(*types.Basic)
	write := ""
	switch {
	case name == "DateTime" && goes.String() == "time.Time":
		write = "Time"
	case name == "JSON" && goes.String() == "encoding/json.RawMessage" && !optional:
		return "JSON"
	case name == "Int" && types.Identical(goes, types.Typ[types.Int]):
		write = "Int"
	case name == "Float" && types.Identical(goes, types.Typ[types.Float64]):
		write = "Float"
	case name == "Boolean" && types.Identical(goes, types.Typ[types.Bool]):
		write = "Bool"
	case basic != nil && basic.Kind() == types.String:
		write = "String"
	}
	switch {
	case !optional:
		return write
	case write == "String" || write == "Time" || write == "Int":
		return "Optional" + write
	}
	return ""
}

// reader returns what of graph/plain reads a parameter of a type, with its type argument, and "" for one that a plain
// query must not give.
func reader(of *ast.Definition, goes types.Type) (read string, argument types.Type) {
	if slice, ok := goes.(*types.Slice); ok && isText(slice.Elem()) {
		return "Texts", slice.Elem()
	}
	if argument := input(of, goes); argument != nil {
		return "Input", argument
	}
	if argument := input(of, types.NewPointer(goes)); argument != nil {
		return "Object", argument
	}
	switch {
	case strings.HasSuffix(goes.String(), "domain/ids.ID") && goes.String()[0] == '*':
		return "OptionalID", nil
	case goes.String() == "string":
		return "Text", nil
	case goes.String() == "bool":
		return "Bool", nil
	case goes.String() == "*bool":
		return "OptionalBool", nil
	case strings.HasSuffix(goes.String(), "domain/ids.ID") && goes.String()[0] != '*':
		return "ID", nil
	case goes.String() == "*int":
		return "OptionalInt", nil
	case goes.String() == "*string":
		return "OptionalText", nil
	}
	return "", nil
}

func isText(goes types.Type) bool {
	basic, ok := goes.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.String
}

// input returns the type of an optional input object that graph/plain reads, and nil for any other argument.
func input(of *ast.Definition, goes types.Type) types.Type {
	pointer, ok := goes.(*types.Pointer)
	if !ok || of.Kind != ast.InputObject {
		return nil
	}
	fields, ok := pointer.Elem().Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for _, field := range of.Fields {
		if field.DefaultValue != nil || !simple(fields, field.Name) {
			return nil
		}
	}
	return pointer.Elem()
}

// simple reports whether a struct has a field of that name that JSON reads as the executor does: a text, a truth value,
// a whole number, an instant, a pointer to one of them, or a list of texts.
func simple(of *types.Struct, name string) bool {
	for field := range of.Fields() {
		if !strings.EqualFold(field.Name(), name) {
			continue
		}
		goes, kinds := field.Type(), types.IsString|types.IsBoolean|types.IsInteger
		switch behind := goes.Underlying().(type) {
		case *types.Pointer:
			goes = behind.Elem()
		case *types.Slice:
			goes, kinds = behind.Elem(), types.IsString
		}
		basic, ok := goes.Underlying().(*types.Basic)
		return goes.String() == "time.Time" || (ok && basic.Info()&kinds != 0)
	}
	return false
}
