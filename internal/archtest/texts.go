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
					found = append(found, textOf(file, tree.line(at), text)...)
				}
			})
		case slices.Contains([]string{".graphql", ".ts", ".tsx", ".md", ".py"}, path.Ext(file.Path)):
			for at, line := range bytes.Split(file.Source, []byte("\n")) {
				found = append(found, textOf(file, at+1, string(line))...)
			}
		}
	}
	return found
}

// textOf returns the words of one text that are not used.
func textOf(file *File, at int, text string) (found []Finding) {
	for _, word := range unusedWord.FindAllString(strings.ToLower(text), -1) {
		found = append(found, unusedAt(file, at, word))
	}
	return found
}
