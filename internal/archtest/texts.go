package archtest

import (
	"bytes"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// prose is a text of several words.
var prose = regexp.MustCompile(`(?i)[a-z]+ [a-z]+`)

// Texts finds texts that people read and that use a word of the table: strings of Go programs, the console's sources,
// the kits, the schema's descriptions, and documents. Tests and docs/style.md, which has the table, are left out.
func Texts(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		switch {
		case file.Test, file.Generated, file.Path == "docs/style.md":
		case file.AST != nil:
			eachString(file, func(at token.Pos, text string) {
				if prose.MatchString(text) && !statement.MatchString(text) {
					found = append(found, wording(file, tree.line(at), strings.ToLower(text), nil)...)
				}
			})
		case slices.Contains([]string{".graphql", ".ts", ".tsx", ".md", ".py"}, path.Ext(file.Path)):
			for at, line := range bytes.Split(file.Source, []byte("\n")) {
				found = append(found, wording(file, at+1, strings.ToLower(string(line)), nil)...)
			}
		}
	}
	return found
}
