package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

// monied are the packages that money goes through.
var monied = []string{"domain/money", "domain/rating", "domain/spending", "service/price", "service/billing",
	"service/budget", "service/kit/tariff", "service/kit/spend", "workers/billing", "service/ledger/usage",
	"domain/metering"}

// floats are names by which floating point comes in: types, and functions and methods that return or take it.
var floats = []string{"float32", "float64", "ParseFloat", "FormatFloat", "Float", "Float32", "Float64", "SetFloat64",
	"NewFloat", "Float64val", "Seconds", "Minutes", "Hours"}

// Floating finds floating point in packages that money goes through: an amount that was once rounded to binary is not
// the amount that was meant. The lengths of time that package time gives in floating point count too.
func Floating(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if file.Test || !slices.ContainsFunc(monied, func(dir string) bool { return within(file.Dir, dir) }) {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			if what := floating(node); what != "" {
				found = append(found, Finding{file.Path, tree.line(node.Pos()), file.Dir + " " + what,
					what + " is floating point: use domain/money"})
			}
			return true
		})
	}
	return found
}

// floating is what makes a node floating point; empty for nothing.
func floating(node ast.Node) string {
	switch at := node.(type) {
	case *ast.BasicLit:
		if at.Kind == token.FLOAT || at.Kind == token.IMAG {
			return at.Value
		}
	case *ast.Ident:
		if at.Name == "float32" || at.Name == "float64" {
			return at.Name
		}
	case *ast.SelectorExpr:
		if slices.Contains(floats, at.Sel.Name) {
			return at.Sel.Name
		}
	}
	return ""
}
