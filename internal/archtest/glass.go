package archtest

import (
	"go/ast"
	"strings"
)

// Glass finds break-glass outside of the verbs that are named so: an audit entry or a role that is flagged, or an input
// that requests it. What sets a rule aside is reviewed in one package.
func Glass(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if file.Test || within(file.Dir, "service/breakglass") || within(file.Dir, "internal/archtest") ||
			within(file.Dir, "ent") {
			continue
		}
		add := func(at ast.Node, text string) {
			found = append(found, Finding{file.Path, tree.line(at.Pos()), file.Path, text})
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.KeyValueExpr:
				name, isName := node.Key.(*ast.Ident)
				value, isWord := node.Value.(*ast.Ident)
				if isName && isWord && name.Name == "BreakGlass" && value.Name == "true" {
					add(node, "only service/breakglass flags break-glass")
				}
			case *ast.SelectorExpr:
				if node.Sel.Name == "SetBreakGlass" || node.Sel.Name == "BreakGlassUse" {
					add(node, "only service/breakglass uses break-glass")
				}
			case *ast.TypeSpec:
				if input, ok := node.Type.(*ast.StructType); ok && within(file.Dir, "service") &&
					strings.HasSuffix(node.Name.Name, "Input") {
					for _, field := range input.Fields.List {
						for _, name := range field.Names {
							if name.Name == "BreakGlass" {
								add(field, "no verb takes a flag for break-glass: it is a verb of its own")
							}
						}
					}
				}
			}
			return true
		})
	}
	return found
}
