// Package columns tells which Go type the states in a column of the database have, and finds the states that SQL
// statements compare with a column or write into it.
package columns

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// Schema maps tables to their columns, and columns to their Go types, such as lifecycle.MemberStatus; a column without
// a Go type has an empty one.
type Schema map[string]map[string]string

// reader finds the methods of the schema's types, by type and name, and its functions.
type reader struct {
	methods   map[string]map[string]*ast.FuncDecl
	functions map[string]*ast.FuncDecl
}

// Read returns the tables that the files of an Ent schema declare. The missing would go unchecked: types with an
// annotation in which it finds no table's name, and types of columns without words. Ids are no states.
func Read(files []*ast.File, words map[string][]string) (schema Schema, missing []string) {
	r := readerOf(files)
	schema = Schema{}
	for of, methods := range r.methods {
		if methods["Annotations"] == nil {
			continue
		}
		name := tableIn(methods["Annotations"])
		if name == "" {
			missing = append(missing, of)
			continue
		}
		schema[name] = map[string]string{}
		r.collect(of, schema[name])
		for _, goType := range schema[name] {
			if goType != "" && goType != "ids.ID" && len(words[goType]) == 0 {
				missing = append(missing, goType)
			}
		}
	}
	slices.Sort(missing)
	return schema, slices.Compact(missing)
}

// Conditions calls do with the condition of each partial index of an Ent schema, as a statement on its table.
func Conditions(files []*ast.File, do func(at token.Pos, statement string)) {
	for _, methods := range readerOf(files).methods {
		if methods["Annotations"] == nil || methods["Indexes"] == nil {
			continue
		}
		table := tableIn(methods["Annotations"])
		ast.Inspect(methods["Indexes"].Body, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || qualified(call.Fun) != "entsql.IndexWhere" || len(call.Args) != 1 {
				return true
			}
			if text, is := joined(call.Args[0], nil); is {
				do(call.Pos(), "SELECT FROM "+table+" WHERE "+text)
			}
			return false
		})
	}
}

// readerOf files the functions of a schema.
func readerOf(files []*ast.File) reader {
	r := reader{map[string]map[string]*ast.FuncDecl{}, map[string]*ast.FuncDecl{}}
	for _, file := range files {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				r.add(function)
			}
		}
	}
	return r
}

// add files a function under its receiver's type.
func (r reader) add(function *ast.FuncDecl) {
	if function.Recv == nil {
		r.functions[function.Name.Name] = function
		return
	}
	if of, ok := function.Recv.List[0].Type.(*ast.Ident); ok {
		if r.methods[of.Name] == nil {
			r.methods[of.Name] = map[string]*ast.FuncDecl{}
		}
		r.methods[of.Name][function.Name.Name] = function
	}
}

// tableIn returns the first text that a function of the schema's package takes in an Annotations method.
func tableIn(annotations *ast.FuncDecl) (name string) {
	ast.Inspect(annotations.Body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && name == "" && len(call.Args) > 0 {
			if _, ours := call.Fun.(*ast.Ident); ours {
				name = textOf(call.Args[0])
			}
		}
		return true
	})
	return name
}

// collect adds the columns of a type and of its mixins.
func (r reader) collect(of string, columns map[string]string) {
	for _, element := range elements(r.methods[of]["Fields"]) {
		if name, goType := r.column(element); name != "" {
			columns[name] = goType
		}
	}
	for _, element := range elements(r.methods[of]["Mixin"]) {
		if mixin, ok := element.(*ast.CompositeLit); ok {
			if name, ours := mixin.Type.(*ast.Ident); ours {
				r.collect(name.Name, columns)
			}
		}
	}
}

// elements returns what the lists in a method's body hold.
func elements(method *ast.FuncDecl) (found []ast.Expr) {
	if method == nil {
		return nil
	}
	ast.Inspect(method.Body, func(node ast.Node) bool {
		list, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if _, ok = list.Type.(*ast.ArrayType); ok {
			found = append(found, list.Elts...)
		}
		return !ok
	})
	return found
}

// column returns the name and the Go type that the calls of one field give it. A field may be one of the package's own
// functions, which names it itself or takes its name as the first argument.
func (r reader) column(field ast.Expr) (name, goType string) {
	stored := ""
	for {
		call, ok := field.(*ast.CallExpr)
		if !ok {
			return "", ""
		}
		first := ""
		if len(call.Args) > 0 {
			first = textOf(call.Args[0])
		}
		switch function := call.Fun.(type) {
		case *ast.Ident:
			name, goType = r.returned(function.Name)
			return cmp.Or(first, name), goType
		case *ast.SelectorExpr:
			if base, ok := function.X.(*ast.Ident); ok && base.Name == "field" {
				return cmp.Or(stored, first), goType
			}
			switch function.Sel.Name {
			case "GoType":
				goType = typeOf(call.Args)
			case "StorageKey":
				stored = first
			}
			field = function.X
		default:
			return "", ""
		}
	}
}

// returned returns the name and the Go type of the field that a function of the package returns.
func (r reader) returned(function string) (name, goType string) {
	declared := r.functions[function]
	if declared == nil {
		return "", ""
	}
	for _, step := range declared.Body.List {
		if answer, ok := step.(*ast.ReturnStmt); ok && len(answer.Results) == 1 {
			return r.column(answer.Results[0])
		}
	}
	return "", ""
}

// typeOf returns the type of an argument like lifecycle.Stage(""); empty for other arguments.
func typeOf(arguments []ast.Expr) string {
	if len(arguments) != 1 {
		return ""
	}
	conversion, ok := arguments[0].(*ast.CallExpr)
	if !ok {
		return ""
	}
	return qualified(conversion.Fun)
}

// textOf returns the text of a literal; empty for other expressions.
func textOf(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value) // the parser has accepted it
	return text
}
