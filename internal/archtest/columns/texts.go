package columns

import (
	"go/ast"
	"go/token"
	"strings"
)

// elsewhere is in a statement what its code adds to it and the source does not show.
const elsewhere = "_elsewhere"

// Named has the constants and variables of packages, by folder and name.
type Named map[string]map[string]ast.Expr

// Add adds those that a file of a folder declares.
func (n Named) Add(dir string, file *ast.File) {
	if n[dir] == nil {
		n[dir] = map[string]ast.Expr{}
	}
	eachValue(file, func(name string, _, value ast.Expr) { n[dir][name] = value })
}

// Texts calls do with every text in a file's code. A text that is added up is one text, with the package's named texts
// in it, so that a statement has its tables where it has its conditions.
func Texts(file *ast.File, named map[string]ast.Expr, do func(at token.Pos, text string)) {
	var visit func(ast.Node) bool
	visit = func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BasicLit:
			if text := textOf(node); text != "" {
				do(node.Pos(), text)
			}
		case *ast.BinaryExpr:
			text, is := joined(node, named)
			if !is {
				return true
			}
			do(node.Pos(), text)
			for _, part := range parts(node) {
				if _, literal := part.(*ast.BasicLit); !literal {
					ast.Inspect(part, visit)
				}
			}
			return false
		}
		return true
	}
	ast.Inspect(file, visit)
}

// parts returns what a sum adds, from the left.
func parts(expression ast.Expr) []ast.Expr {
	switch expression := expression.(type) {
	case *ast.ParenExpr:
		return parts(expression.X)
	case *ast.BinaryExpr:
		if expression.Op == token.ADD {
			return append(parts(expression.X), parts(expression.Y)...)
		}
	}
	return []ast.Expr{expression}
}

// joined returns the text of a sum, and false when nothing in it is a text.
func joined(expression ast.Expr, named map[string]ast.Expr) (text string, is bool) {
	var all strings.Builder
	for _, part := range parts(expression) {
		piece := " " + elsewhere + " "
		switch part := part.(type) {
		case *ast.BasicLit:
			piece, is = textOf(part), true
		case *ast.Ident:
			if value, known := joined(named[part.Name], named); known {
				piece, is = value, true
			}
		}
		all.WriteString(piece)
	}
	return all.String(), is
}
