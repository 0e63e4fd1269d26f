package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

var (
	// statement is text that goes to the database.
	statement = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE)\b`)
	// compared is a column with the state or states that it is set to or compared with.
	compared = regexp.MustCompile(`\b[a-z_.]+ *(?:=|<>|!=|(?:NOT )?IN) *\(?((?:'[A-Z][A-Z_]+'(?:, *)?)+)`)
	// quoted is one state in a statement.
	quoted = regexp.MustCompile(`'([A-Z][A-Z_]+)'`)
)

// MisspeltStates finds states in SQL that no type of domain/lifecycle has, and comparisons with states of several
// types. The statements write states as literals, because the planner then uses partial indexes; this rule keeps
// domain/lifecycle their only speller.
func MisspeltStates(tree *Tree) (found []Finding) {
	words := lifecycleWords(tree)
	for _, file := range tree.Written() {
		if file.Test || within(file.Dir, "rig") || outsider(file.Dir) != "" {
			continue
		}
		eachString(file, func(at token.Pos, text string) {
			if !statement.MatchString(text) {
				return
			}
			for _, problem := range misspelt(text, words) {
				found = append(found, Finding{file.Path, tree.line(at), file.Path + " " + problem,
					problem + ": domain/lifecycle has no such state"})
			}
		})
	}
	return found
}

// misspelt returns the comparisons of a statement whose states are not all of one type.
func misspelt(text string, words map[string][]string) (problems []string) {
	for _, match := range compared.FindAllStringSubmatch(text, -1) {
		var common []string
		for i, state := range quoted.FindAllStringSubmatch(match[1], -1) {
			types := words[state[1]]
			if i == 0 {
				common = types
			}
			common = slices.DeleteFunc(slices.Clone(common), func(name string) bool { return !slices.Contains(types, name) })
		}
		if len(common) == 0 {
			problems = append(problems, strings.TrimSpace(match[0]))
		}
	}
	return problems
}

// lifecycleWords returns every constant of the packages whose values are stored, most of them domain/lifecycle's, with
// the types that have it.
func lifecycleWords(tree *Tree) map[string][]string {
	words := map[string][]string{}
	for _, file := range tree.Written() {
		if file.Test || (file.Dir != "domain/lifecycle" && file.Dir != "domain/policy" && file.Dir != "sdk/nodetask" &&
			file.Dir != "authz") {
			continue
		}
		kind := ""
		for _, spec := range constants(file.AST) {
			if named, ok := spec.Type.(*ast.Ident); ok {
				kind = named.Name
			}
			if text := literal(spec); text != "" {
				words[text] = append(words[text], fmt.Sprint(file.Dir, ".", kind))
			}
		}
	}
	return words
}
