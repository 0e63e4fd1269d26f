package columns

import "go/ast"

// Words returns the states of each type: the texts of the constants that have it. A constant may be another package's,
// converted: NodeTaskKind(nodetask.KindRun).
func Words(files []*ast.File) map[string][]string {
	texts, words := map[string]string{}, map[string][]string{}
	for _, file := range files {
		eachValue(file, func(name string, _, value ast.Expr) { texts[file.Name.Name+"."+name] = textOf(value) })
	}
	for _, file := range files {
		eachValue(file, func(_ string, kind, value ast.Expr) {
			text := textOf(value)
			if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
				kind, text = call.Fun, texts[qualified(call.Args[0])]
			}
			if named, ok := kind.(*ast.Ident); ok && text != "" {
				of := file.Name.Name + "." + named.Name
				words[of] = append(words[of], text)
			}
		})
	}
	return words
}

// eachValue calls do with the name, type and value of each constant and variable that a file declares with a value.
func eachValue(file *ast.File, do func(name string, kind, value ast.Expr)) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && len(value.Names) == len(value.Values) {
				for i, name := range value.Names {
					do(name.Name, value.Type, value.Values[i])
				}
			}
		}
	}
}

// qualified returns a name with its package; empty for other expressions.
func qualified(expression ast.Expr) string {
	if named, ok := expression.(*ast.SelectorExpr); ok {
		if from, ok := named.X.(*ast.Ident); ok {
			return from.Name + "." + named.Sel.Name
		}
	}
	return ""
}
