package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/internal/archtest/columns"
)

// statement is text that goes to the database.
var statement = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE)\b`)

// spellers are the packages with the types of states that the database stores.
var spellers = []string{"domain/lifecycle", "domain/policy", "domain/isolation", "domain/spending", "domain/volume",
	"sdk/nodetask", "authz"}

// MisspeltStates finds states in SQL that the type of their column does not have: in statements, in the conditions of
// partial indexes, and in the newest bodies of the database's functions. They are literals there, because the planner
// then uses partial indexes; this rule keeps domain/lifecycle their only speller. Where a statement does not say which
// table a column is of, its states are all of one type.
func MisspeltStates(tree *Tree) (found []Finding) {
	words, declared := columns.Words(syntax(tree, spellers...)), syntax(tree, "ent/schema")
	schema, missing := columns.Read(declared, words)
	for _, name := range missing {
		found = append(found, Finding{"internal/archtest/states.go", 1, name, "no table or no states of " + name})
	}
	check := func(path string, line int, text string, resolved bool) {
		for _, comparison := range columns.Comparisons(text, schema) {
			if problem := comparison.Problem(words); problem != "" && (!resolved || len(comparison.Types) > 0) {
				found = append(found, Finding{path, line, path + " " + comparison.Column, problem})
			}
		}
	}
	inGo := func(at token.Pos, text string) {
		place := tree.fset.Position(at)
		check(place.Filename, place.Line, text, false)
	}
	eachStatement(tree, inGo)
	columns.Conditions(declared, inGo)
	functions := columns.Functions{}
	for _, file := range tree.Files {
		if file.Dir == "migrations" && strings.HasSuffix(file.Path, ".sql") {
			functions.Add(file.Path, string(file.Source))
		}
	}
	for _, function := range functions {
		check(function.Path, function.Line, function.Body, true)
	}
	return found
}

// eachStatement calls do with every statement of the platform's own code.
func eachStatement(tree *Tree, do func(at token.Pos, text string)) {
	own, named := tree.Written(), columns.Named{}
	own = slices.DeleteFunc(own, func(f *File) bool { return f.Test || within(f.Dir, "rig") || outsider(f.Dir) != "" })
	for _, file := range own {
		named.Add(file.Dir, file.AST)
	}
	for _, file := range own {
		columns.Texts(file.AST, named[file.Dir], func(at token.Pos, text string) {
			if statement.MatchString(text) {
				do(at, text)
			}
		})
	}
}

// syntax returns the syntax trees of folders, tests left out.
func syntax(tree *Tree, dirs ...string) (found []*ast.File) {
	for _, file := range tree.Written() {
		if !file.Test && slices.Contains(dirs, file.Dir) {
			found = append(found, file.AST)
		}
	}
	return found
}
