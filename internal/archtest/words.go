package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// unused are words of the table in docs/style.md that no comment needs, each with what to write.
var unused = map[string]string{
	"nobody":    "no one, no caller",
	"whoever":   "the caller, the worker",
	"those who": "callers that, people who",
	"told":      "reported, returned",
	"heard":     "received, reported",
	"anew":      "again",
	"its word":  "its answer, its report",
	"says so":   "states it",
	"loser":     "the subscription that ends",
}

var unusedWord = regexp.MustCompile(`\b(` + strings.Join(slices.Collect(maps.Keys(unused)), "|") + `)\b`)

// columnLimit bounds a line of code or of a comment; a tab counts as four columns.
const columnLimit = 120

// WideLines finds lines that are too wide, in tests too. Raw strings are left out, since their lines are data: SQL,
// JSON, scripts. So are pictures in comments, which begin with a tab.
func WideLines(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		raw := tree.rawLines(file)
		for i, line := range strings.Split(string(file.Source), "\n") {
			code := strings.TrimLeft(line, "\t")
			columns := utf8.RuneCountInString(code) + 4*(len(line)-len(code))
			if columns > columnLimit && !raw[i+1] && !strings.HasPrefix(code, "//\t") {
				found = append(found, Finding{file.Path, i + 1, file.Path,
					fmt.Sprintf("the line has %d columns, of %d at most", columns, columnLimit)})
			}
		}
	}
	return found
}

// rawLines returns the lines of a file that have a part of a raw string.
func (t *Tree) rawLines(file *File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(file.AST, func(node ast.Node) bool {
		if text, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, "`") {
			for at := t.line(text.Pos()); at <= t.line(text.End()); at++ {
				lines[at] = true
			}
		}
		return true
	})
	return lines
}

// Wordings finds comments on lines of their own that use a word of the table which is not a name in the file's code.
// Tests are left out.
func Wordings(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if file.Test {
			continue
		}
		names, lines := namesIn(file.AST), bytes.Split(file.Source, []byte("\n"))
		for _, group := range file.AST.Comments {
			for _, comment := range group.List {
				at := tree.line(comment.Pos())
				line := strings.TrimLeft(string(lines[at-1]), "\t")
				if strings.HasPrefix(line, "// ") { // code and pictures in comments begin with a tab
					found = append(found, wording(file, at, line, names)...)
				}
			}
		}
	}
	return found
}

// wording returns the words of one text that are not used, except for names.
func wording(file *File, at int, text string, names map[string]bool) (found []Finding) {
	for _, word := range unusedWord.FindAllString(text, -1) {
		if !names[word] {
			found = append(found, Finding{file.Path, at, file.Path + " " + word,
				fmt.Sprintf("write %s instead of %q: see docs/style.md", unused[word], word)})
		}
	}
	return found
}

// namesIn returns every name in a file's code.
func namesIn(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok {
			names[name.Name] = true
		}
		return true
	})
	return names
}
