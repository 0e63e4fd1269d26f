package columns

import "go/ast"

// Words returns the states of each type: the texts of the constants that have it. A constant may be another package's,
// converted: NodeTaskKind(nodetask.KindRun).
func Words(files []*ast.File) map[string][]string {
	texts, words := map[string]string{}, map[string][]string{}
	eachConstant(files, func(from, name string, _, value ast.Expr) { texts[from+"."+name] = textOf(value) })
	eachConstant(files, func(from, _ string, kind, value ast.Expr) {
		text := textOf(value)
		if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
			kind, text = call.Fun, texts[qualified(call.Args[0])]
		}
		if named, ok := kind.(*ast.Ident); ok && text != "" {
			words[from+"."+named.Name] = append(words[from+"."+named.Name], text)
		}
	})
	return words
}

// eachConstant calls do with the package, name, type and value of each constant that a file declares by itself.
func eachConstant(files []*ast.File, do func(from, name string, kind, value ast.Expr)) {
	for _, file := range files {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && len(value.Names) == 1 && len(value.Values) == 1 {
					do(file.Name.Name, value.Names[0].Name, value.Type, value.Values[0])
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
