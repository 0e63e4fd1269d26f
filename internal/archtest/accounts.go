package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// Unasked finds permission keys that no verb checks: a key in the catalogue promises that some verb does. A key of a
// family counts as checked when a verb checks its suffix in the object's family.
func Unasked(tree *Tree) (found []Finding) {
	asked, literals := mentioned(tree, "authz", "authz")
	for _, entry := range catalogued(tree, "authz/keys.go") {
		if suffix := suffixOf(entry.text); asked[entry.name] || literals[entry.text] ||
			(suffix != "" && literals[suffix]) {
			continue
		}
		found = append(found, Finding{entry.file, entry.line, entry.text,
			"no verb checks the permission key " + entry.text})
	}
	return found
}

// Unraised finds fault codes that nothing answers with.
func Unraised(tree *Tree) (found []Finding) {
	raised, literals := mentioned(tree, "fault", "domain/fault")
	for _, file := range tree.Files {
		if file.Path != "domain/fault/catalogue.go" || file.AST == nil {
			continue
		}
		for _, spec := range constants(file.AST) {
			name, text := spec.Names[0].Name, literal(spec)
			if text != "" && !raised[name] && !literals[text] {
				found = append(found, Finding{file.Path, tree.line(spec.Pos()), text,
					"nothing answers with the code " + text})
			}
		}
	}
	return found
}

// Untold finds types of event that nothing writes: a type in the list is a promise to its subscribers. The table of
// operation kinds writes what it names, and a type counts as written where its text is built from a part that ends in
// "_".
func Untold(tree *Tree) (found []Finding) {
	const declared, kinds = "domain/lifecycle/event.go", "domain/lifecycle/kind.go"
	told, literals := mentioned(tree, "lifecycle", "domain/lifecycle")
	for _, file := range tree.Files {
		if file.Path != kinds || file.AST == nil {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok {
				told[name.Name] = true
			}
			return true
		})
	}
	made := func(text string) bool {
		at := strings.LastIndex(text, "_")
		return literals[text] || at > 0 && literals[text[:at+1]]
	}
	for _, file := range tree.Files {
		if file.Path != declared || file.AST == nil {
			continue
		}
		for _, spec := range constants(file.AST) {
			name, text := spec.Names[0].Name, literal(spec)
			if text != "" && !told[name] && !made(text) {
				found = append(found, Finding{file.Path, tree.line(spec.Pos()), text,
					"nothing writes events of the type " + text})
			}
		}
	}
	return found
}

// mentioned is every identifier that the platform's own code takes from a package, and every string it
// holds; the package itself, tests, generated code and the runbooks, which advise about what there is, do not count.
func mentioned(tree *Tree, from, dir string) (names, texts map[string]bool) {
	names, texts = map[string]bool{}, map[string]bool{}
	for _, file := range tree.Written() {
		if file.Test || within(file.Dir, dir) || outsider(file.Dir) != "" || within(file.Dir, "sdk") ||
			within(file.Dir, "internal/archtest") || within(file.Dir, "domain/runbook") {
			continue
		}
		eachString(file, func(_ token.Pos, text string) { texts[text] = true })
		ast.Inspect(file.AST, func(node ast.Node) bool {
			if name, ok := node.(*ast.SelectorExpr); ok && isName(name.X, from) {
				names[name.Sel.Name] = true
			}
			return true
		})
	}
	return names, texts
}

// entry is a constant with the text that a table gives it.
type entry struct {
	file, name, text string
	line             int
}

// catalogued is every row of the key catalogue: `Name: {"text", "description"}`.
func catalogued(tree *Tree, path string) (rows []entry) {
	for _, file := range tree.Files {
		if file.Path != path || file.AST == nil {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			row, ok := node.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			name, isName := row.Key.(*ast.Ident)
			value, isRow := row.Value.(*ast.CompositeLit)
			if isName && isRow && len(value.Elts) == 2 {
				if first, ok := value.Elts[0].(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(first.Value)
					rows = append(rows, entry{file.Path, name.Name, text, tree.line(row.Pos())})
				}
			}
			return true
		})
	}
	return rows
}

// suffixOf is a family key without its family; empty for other keys.
func suffixOf(key string) string {
	for _, family := range []string{"apps.", "scheduler."} {
		if rest, ok := strings.CutPrefix(key, family); ok {
			return rest
		}
	}
	return ""
}

// constants is every constant of one name in the file.
func constants(file *ast.File) (found []*ast.ValueSpec) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && len(value.Names) == 1 {
				found = append(found, value)
			}
		}
	}
	return found
}

// literal is the string that a constant is given; empty when it is given none.
func literal(spec *ast.ValueSpec) string {
	if len(spec.Values) != 1 {
		return ""
	}
	value, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || value.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(value.Value)
	return text
}
