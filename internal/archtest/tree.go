package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path that every import of our own begins with.
const Module = "github.com/gpuaas/app-platform"

// File is one file of the module; AST is nil for a file that is not Go.
type File struct {
	// Path is relative to the module's root, with slashes; Dir is its folder, "." for the root.
	Path, Dir string
	// Test reports that it is compiled into tests alone; Generated that it lies below a folder of that name.
	Test, Generated bool
	// Source is what it holds, and Lines how many lines that is.
	Source []byte
	Lines  int
	AST    *ast.File
}

// Import is one import of the module's own packages, by folder.
type Import struct {
	To   string
	Line int
}

// Tree is every file of the module, written or generated.
type Tree struct {
	Files []*File
	fset  *token.FileSet
}

// Finding is one breach of a rule. Key is what an exception names: stable when lines move.
type Finding struct {
	Path string
	Line int
	Key  string
	Text string
}

// String is the finding as a compiler would print it.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text) }

// skipped are folders that hold nothing of this module.
var skipped = []string{".git", ".data", "bin", "node_modules", "dist", "testdata", "rke2-standin"}

// kept are the kinds of file that some rule reads.
var kept = []string{".go", ".sql", ".graphql", ".csv", ".conf", ".ts", ".tsx", ".css", ".md", ".py"}

// Load reads the module below root.
func Load(root string) (*Tree, error) {
	sources := map[string][]byte{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(kept, path.Ext(entry.Name())) {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		sources[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the module: %w", err)
	}
	return Parse(sources)
}

// Parse makes a tree of sources by path; a Go file that does not parse is an error.
func Parse(sources map[string][]byte) (*Tree, error) {
	tree := &Tree{fset: token.NewFileSet()}
	for name, source := range sources {
		file := &File{
			Path: name, Dir: path.Dir(name), Source: source, Lines: bytes.Count(source, []byte("\n")),
			Test: isTest(name), Generated: strings.Contains("/"+name, "/generated/"),
		}
		if path.Ext(name) == ".go" {
			parsed, err := parser.ParseFile(tree.fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			file.AST = parsed
		}
		tree.Files = append(tree.Files, file)
	}
	slices.SortFunc(tree.Files, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	return tree, nil
}

func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".test.ts") ||
		strings.HasSuffix(name, ".test.tsx")
}

// Document reports whether the file is for people alone.
func (f *File) Document() bool { return path.Ext(f.Path) == ".md" }

// Written is every Go file that a person wrote.
func (t *Tree) Written() []*File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f *File) bool { return f.AST == nil || f.Generated })
}

// line is where a node begins.
func (t *Tree) line(at token.Pos) int { return t.fset.Position(at).Line }

// eachString calls do with every string that a Go file has in its code.
func eachString(file *File, do func(at token.Pos, text string)) {
	ast.Inspect(file.AST, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				do(literal.Pos(), text)
			}
		}
		return true
	})
}

// imports is every import of the file, by path.
func imports(f *File) []*ast.ImportSpec { return f.AST.Imports }

// pathOf is the path that an import names.
func pathOf(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // it has been parsed, so this does not happen; the rule shows the raw text
	}
	return name
}

// own is every import of the module's own packages.
func (t *Tree) own(f *File) []Import {
	var found []Import
	for _, spec := range imports(f) {
		if to, ok := strings.CutPrefix(pathOf(spec), Module+"/"); ok {
			found = append(found, Import{To: to, Line: t.line(spec.Pos())})
		}
	}
	return found
}

// within reports whether a folder is the prefix or lies below it.
func within(dir, prefix string) bool { return dir == prefix || strings.HasPrefix(dir, prefix+"/") }
