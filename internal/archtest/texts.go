package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prose is a text of several words, and sqlText one that a database reads.
var (
	prose   = regexp.MustCompile(`(?i)[a-z]+ [a-z]+`)
	sqlText = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|WITH|WHERE)\b`)
)

// Texts finds texts that people read and that use a word of the table: strings of Go programs, the console's sources,
// the kits, the schema's descriptions, and documents. Tests and docs/style.md, which has the table, are left out.
func Texts(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		switch {
		case file.Test, file.Generated, file.Path == "docs/style.md":
		case file.AST != nil:
			found = append(found, textsOfGo(tree, file)...)
		case slices.Contains([]string{".graphql", ".ts", ".tsx", ".md", ".py"}, path.Ext(file.Path)):
			for at, line := range bytes.Split(file.Source, []byte("\n")) {
				found = append(found, textOf(file, at+1, string(line))...)
			}
		}
	}
	return found
}

// textsOfGo reads the strings of a Go file that are neither names nor statements.
func textsOfGo(tree *Tree, file *File) (found []Finding) {
	ast.Inspect(file.AST, func(node ast.Node) bool {
		literal, is := node.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && prose.MatchString(text) && !sqlText.MatchString(text) {
			found = append(found, textOf(file, tree.line(literal.Pos()), text)...)
		}
		return true
	})
	return found
}

// textOf returns the words of one text that are not used.
func textOf(file *File, at int, text string) (found []Finding) {
	for _, word := range unusedWord.FindAllString(strings.ToLower(text), -1) {
		found = append(found, Finding{file.Path, at, file.Path + " " + word,
			fmt.Sprintf("write %s instead of %q: see docs/style.md", unused[word], word)})
	}
	return found
}
