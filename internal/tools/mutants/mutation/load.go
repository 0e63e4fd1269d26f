package mutation

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is a package, parsed and type-checked.
type source struct {
	path, dir string
	name      string
	fset      *token.FileSet
	files     map[string]*ast.File // by base name
	text      map[string][]byte
	info      *types.Info
	types     *types.Package
}

// listed is what `go list` reports of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// load reads one package. Its imports come from the export data of the build cache.
func load(ctx context.Context, dir, pattern string) (*source, error) {
	fields := "-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly"
	command := exec.CommandContext(ctx, "go", "list", "-export", "-deps", fields, pattern) // #nosec G204 -- developers'
	command.Dir, command.Stderr = dir, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	exports := map[string]string{}
	var found *listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		exports[one.ImportPath] = one.Export
		if !one.DepOnly {
			if found != nil {
				return nil, fmt.Errorf("%s is more than one package: name one", pattern)
			}
			found = &one
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s is not a package", pattern)
	}
	return check(found, exports)
}

// check parses the package's files and resolves their types.
func check(of *listed, exports map[string]string) (*source, error) {
	s := &source{
		path: of.ImportPath, dir: of.Dir, name: of.Name, fset: token.NewFileSet(),
		files: map[string]*ast.File{}, text: map[string][]byte{},
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}},
	}
	var all []*ast.File
	for _, name := range of.GoFiles {
		path := filepath.Join(of.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[name], s.text[name], all = file, text, append(all, file)
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	var err error
	if s.types, err = config.Check(of.ImportPath, s.fset, all, s.info); err != nil {
		return nil, fmt.Errorf("check the types of %s: %w", of.ImportPath, err)
	}
	return s, nil
}

// offset returns where a position is in its file, in bytes.
func (s *source) offset(at token.Pos) int { return s.fset.Position(at).Offset }

// code returns the text of a node.
func (s *source) code(file string, node ast.Node) string {
	return string(s.text[file][s.offset(node.Pos()):s.offset(node.End())])
}

// spell writes a type as the file can; false when the file does not import the type's package.
func (s *source) spell(file string, t types.Type) (string, bool) {
	known := true
	text := types.TypeString(t, func(other *types.Package) string {
		if other == s.types {
			return ""
		}
		for _, spec := range s.files[file].Imports {
			if strings.Trim(spec.Path.Value, `"`) == other.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return other.Name()
			}
		}
		known = false
		return other.Name()
	})
	return text, known
}
