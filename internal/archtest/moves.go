package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// handed is a statement or a call that writes a state which its caller was given.
var handed = regexp.MustCompile(`\b(state|status|stage) = \$|\bSet(State|Status|Stage)\b`)

// Unmade finds states and moves of domain/lifecycle's tables that no code makes: a row there is a promise to its
// readers, and to the guard in the database. The writers are reviewed, in makers; the rule checks that each exists and
// writes the state, or writes one that it is handed.
func Unmade(tree *Tree) (found []Finding) {
	machines, rows := declaredMoves(tree)
	writers := functions(tree)
	for _, row := range rows {
		key := row.machine + " " + strings.TrimSpace(row.from+" → "+row.to)
		by := makers[row.machine][strings.TrimSpace(row.from+" "+row.to)]
		problem := ""
		switch {
		case len(by) == 0:
			problem = "no code makes the move " + key
		default:
			for _, one := range by {
				if problem = writers.lacks(one, row); problem != "" {
					break
				}
			}
		}
		if problem != "" {
			found = append(found, Finding{row.file, row.line, key, problem})
		}
	}
	return append(found, undeclared(machines, rows)...)
}

// undeclared finds writers of moves that the tables do not have any more.
func undeclared(machines []string, rows []move) (found []Finding) {
	for _, machine := range machines {
		for key := range makers[machine] {
			if !slices.ContainsFunc(rows, func(m move) bool {
				return m.machine == machine && strings.TrimSpace(m.from+" "+m.to) == key
			}) {
				found = append(found, Finding{"internal/archtest/makers.go", 1, machine + " " + key,
					"the table has no such move: " + machine + " " + key})
			}
		}
	}
	return found
}

// move is a row of a table: from is empty for the state that a new row has. name is how Go spells the state to.
type move struct {
	machine, from, to, name, file string
	line                          int
}

// declaredMoves reads the tables of domain/lifecycle.
func declaredMoves(tree *Tree) (machines []string, rows []move) {
	words, lists := map[string]string{}, map[string]*ast.CompositeLit{}
	var tables []*ast.CompositeLit
	files := map[*ast.CompositeLit]string{}
	for _, file := range tree.Written() {
		if file.Test || file.Dir != "domain/lifecycle" {
			continue
		}
		for _, spec := range constants(file.AST) {
			words[spec.Names[0].Name] = literal(spec)
		}
		for name, value := range composites(file.AST) {
			files[value] = file.Path
			if kind, ok := value.Type.(*ast.IndexExpr); ok && isName(kind.X, "table") && len(value.Elts) == 3 {
				tables = append(tables, value)
			}
			lists[name] = value
		}
	}
	for _, table := range tables {
		machine, _ := strconv.Unquote(table.Elts[0].(*ast.BasicLit).Value)
		first := table.Elts[1].(*ast.Ident)
		machines = append(machines, machine)
		at := func(from string, to *ast.Ident) move {
			return move{machine, from, words[to.Name], to.Name, files[table], tree.line(to.Pos())}
		}
		rows = append(rows, at("", first))
		list, ok := table.Elts[2].(*ast.CompositeLit)
		if !ok {
			list = lists[table.Elts[2].(*ast.Ident).Name]
		}
		for _, element := range list.Elts {
			row := element.(*ast.CompositeLit)
			rows = append(rows, at(words[row.Elts[0].(*ast.Ident).Name], row.Elts[1].(*ast.Ident)))
		}
	}
	return machines, rows
}

// composites is every variable of the file that is given a composite literal.
func composites(file *ast.File) map[string]*ast.CompositeLit {
	found := map[string]*ast.CompositeLit{}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if value, ok := spec.Values[i].(*ast.CompositeLit); ok {
						found[name.Name] = value
					}
				}
			}
		}
	}
	return found
}

// isName reports whether the expression is this name.
func isName(expr ast.Expr, name string) bool {
	ident, ok := expr.(*ast.Ident)
	return ok && ident.Name == name
}

// written is what the functions of each folder hold, and the package's variables and constants by name.
type written struct {
	functions, values map[string][]ast.Node
}

// functions collects the platform's functions by "folder name", and what is declared beside them.
func functions(tree *Tree) written {
	all := written{map[string][]ast.Node{}, map[string][]ast.Node{}}
	for _, file := range tree.Written() {
		if file.Test {
			continue
		}
		for _, declaration := range file.AST.Decls {
			switch declared := declaration.(type) {
			case *ast.FuncDecl:
				key := file.Dir + " " + declared.Name.Name
				all.functions[key] = append(all.functions[key], declared)
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range value.Names {
							key := file.Dir + " " + name.Name
							all.values[key] = append(all.values[key], value)
						}
					}
				}
			}
		}
	}
	return all
}

// lacks says why a named function, or a named statement beside one, does not make the move; empty when it does.
func (w written) lacks(by string, row move) string {
	name, given := strings.CutSuffix(by, " given")
	dir, _, _ := strings.Cut(name, " ")
	bodies := append(slices.Clone(w.functions[name]), w.values[name]...)
	if len(bodies) == 0 {
		return "no function is called " + name + ", which is to make the move to " + row.to
	}
	for _, body := range bodies {
		if w.writes(dir, body, row, given, true) {
			return ""
		}
	}
	return name + " does not write " + row.to
}

// writes reports whether the node names the state, or writes one that it is handed; what it refers to in its package
// counts too, to the depth of one.
func (w written) writes(dir string, node ast.Node, row move, given, follow bool) (yes bool) {
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			yes = yes || !given && isName(node.X, "lifecycle") && node.Sel.Name == row.name ||
				given && handed.MatchString(node.Sel.Name)
		case *ast.BasicLit:
			text, err := strconv.Unquote(node.Value)
			yes = yes || err == nil && (!given && strings.Contains(text, "'"+row.to+"'") ||
				given && handed.MatchString(text))
		case *ast.Ident:
			for _, value := range w.values[dir+" "+node.Name] {
				yes = yes || follow && w.writes(dir, value, row, given, false)
			}
		}
		return !yes
	})
	return yes
}
