package archtest

import "go/ast"

// StrayInitialisers is every `if` whose initialiser assigns nothing that its condition reads: the reader takes the
// two for one thought.
func StrayInitialisers(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		ast.Inspect(file.AST, func(node ast.Node) bool {
			branch, ok := node.(*ast.IfStmt)
			if ok && branch.Init != nil && !readsAssigned(branch) {
				found = append(found, Finding{file.Path, tree.line(branch.Pos()), file.Path,
					"the condition reads nothing that the initialiser assigns: make the initialiser a statement of " +
						"its own"})
			}
			return true
		})
	}
	return found
}

// readsAssigned reports whether the condition of a branch reads something that its initialiser assigns.
func readsAssigned(branch *ast.IfStmt) (reads bool) {
	assigned := map[string]bool{}
	for _, left := range targets(branch.Init) {
		if name := rootName(left); name != "_" {
			assigned[name] = true
		}
	}
	ast.Inspect(branch.Cond, func(node ast.Node) bool {
		name, ok := node.(*ast.Ident)
		reads = reads || ok && assigned[name.Name]
		return true
	})
	return reads
}

// targets returns what a statement assigns to.
func targets(statement ast.Stmt) []ast.Expr {
	switch statement := statement.(type) {
	case *ast.AssignStmt:
		return statement.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{statement.X}
	}
	return nil
}

// rootName returns the variable that an expression assigns to or through; empty for other expressions.
func rootName(left ast.Expr) string {
	switch left := left.(type) {
	case *ast.Ident:
		return left.Name
	case *ast.SelectorExpr:
		return rootName(left.X)
	case *ast.IndexExpr:
		return rootName(left.X)
	case *ast.StarExpr:
		return rootName(left.X)
	}
	return ""
}
