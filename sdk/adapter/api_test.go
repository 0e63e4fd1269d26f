package adapter_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// record writes the listing of today's exported API where a golden is missing. A golden that exists is never written
// again: it is a promise to adapters that were built against it.
var record = flag.Bool("record-api", false, "write the listings of the exported API that are missing")

// TestEverythingExportedYesterdayIsExportedToday compares the exported API, line by line, with the listing that was
// recorded at commit a3d4938. A line that is missing today is an adapter that does not compile any more. Lines that are
// new are additions, which is what the contract of the SDK allows.
func TestEverythingExportedYesterdayIsExportedToday(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"adapter":    "github.com/gpuaas/app-platform/sdk/adapter",
		"controller": "github.com/gpuaas/app-platform/sdk/adapter/controller",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listing := exportedAPI(t, path)
			golden := filepath.Join("testdata", "api-a3d4938", name+".txt")
			if _, err := os.Stat(golden); *record && os.IsNotExist(err) {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(strings.Join(listing, "\n")+"\n"), 0o644))
			}
			raw, err := os.ReadFile(golden)
			require.NoError(t, err)
			for line := range strings.Lines(string(raw)) {
				require.True(t, slices.Contains(listing, strings.TrimSuffix(line, "\n")),
					"exported at a3d4938 and not today: %s", line)
			}
		})
	}
}

// exportedAPI lists what a package exports, one fact a line, sorted: constants with their values, functions with their
// signatures, types with their kind, each exported field with its tag, each exported method.
func exportedAPI(t *testing.T, path string) []string {
	t.Helper()
	pkg := loaded(t, path)
	a := &api{own: pkg, names: map[*types.TypeName]string{}}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if alias, ok := scope.Lookup(name).(*types.TypeName); ok && alias.IsAlias() && alias.Exported() {
			a.known(name, alias.Type())
		}
	}
	for _, name := range scope.Names() {
		if object := scope.Lookup(name); object.Exported() {
			a.object(object)
		}
	}
	slices.SortFunc(a.lines, cmp.Compare[string])
	return slices.Compact(a.lines)
}

// api gathers the listing of one package.
type api struct {
	own *types.Package
	// names holds the name under which the package exports a type of another package, so that a type that has moved
	// behind an alias is listed as before.
	names map[*types.TypeName]string
	lines []string
}

// known notes the name under which the package exports a type, for each alias on the way to the type and for the type.
func (a *api) known(name string, of types.Type) {
	for {
		switch shape := of.(type) {
		case *types.Alias:
			a.names[shape.Obj()] = name
			of = shape.Rhs()
		case *types.Named:
			a.names[shape.Obj()] = name
			return
		default:
			return
		}
	}
}

func (a *api) add(format string, args ...any) {
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

func (a *api) object(object types.Object) {
	switch object := object.(type) {
	case *types.Const:
		a.add("const %s %s = %s", object.Name(), a.text(object.Type()), object.Val().ExactString())
	case *types.Var: // a function that is forwarded by a variable is listed as the function that it was
		if signature, ok := object.Type().(*types.Signature); ok {
			a.add("func %s%s", object.Name(), strings.TrimPrefix(a.text(signature), "func"))
			return
		}
		a.add("var %s %s", object.Name(), a.text(object.Type()))
	case *types.Func:
		a.add("func %s%s", object.Name(), strings.TrimPrefix(a.text(object.Type()), "func"))
	case *types.TypeName:
		a.typeName(object)
	}
}

func (a *api) typeName(name *types.TypeName) {
	shape := types.Unalias(name.Type()).Underlying()
	if types.Comparable(name.Type()) {
		a.add("comparable %s", name.Name())
	}
	switch shape := shape.(type) {
	case *types.Struct:
		a.add("type %s struct", name.Name())
		for i := range shape.NumFields() {
			if field := shape.Field(i); field.Exported() {
				a.add("field %s.%s %s `%s`", name.Name(), field.Name(), a.text(field.Type()), shape.Tag(i))
			}
		}
	case *types.Interface:
		a.add("type %s interface", name.Name())
		// one more or one fewer breaks those that implement it: the whole set is a line
		for i := range shape.NumMethods() {
			a.add("method %s.%s%s, of %d", name.Name(), shape.Method(i).Name(),
				strings.TrimPrefix(a.text(shape.Method(i).Type()), "func"), shape.NumMethods())
		}
		return
	default:
		a.add("type %s %s", name.Name(), a.text(shape))
	}
	for kind, set := range map[string]*types.MethodSet{
		"": types.NewMethodSet(name.Type()), "*": types.NewMethodSet(types.NewPointer(name.Type())),
	} {
		for i := range set.Len() {
			if method := set.At(i).Obj(); method.Exported() {
				a.add("method %s%s.%s%s", kind, name.Name(), method.Name(),
					strings.TrimPrefix(a.text(method.Type()), "func"))
			}
		}
	}
}

// text writes a type without the names of parameters, which no caller depends on.
func (a *api) text(of types.Type) string {
	if signature, ok := of.(*types.Signature); ok {
		of = types.NewSignatureType(nil, nil, nil, unnamed(signature.Params()), unnamed(signature.Results()),
			signature.Variadic())
	}
	return a.renamed(types.TypeString(of, func(pkg *types.Package) string { return pkg.Path() }))
}

// renamed gives types of the package their own names, wherever they are defined.
func (a *api) renamed(text string) string {
	for moved, name := range a.names {
		text = replaceWord(text, moved.Pkg().Path()+"."+moved.Name(), name)
	}
	return strings.ReplaceAll(text, a.own.Path()+".", "")
}

// replaceWord replaces a qualified name, but not the beginning of a longer one.
func replaceWord(text, from, to string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, from)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if after != "" && (after[0] == '_' || after[0] >= '0' && after[0] <= '9' || after[0]|0x20 >= 'a' &&
			after[0]|0x20 <= 'z') {
			out.WriteString(from)
		} else {
			out.WriteString(to)
		}
		text = after
	}
}

func unnamed(list *types.Tuple) *types.Tuple {
	vars := make([]*types.Var, list.Len())
	for i := range vars {
		vars[i] = types.NewVar(token.NoPos, nil, "", list.At(i).Type())
	}
	return types.NewTuple(vars...)
}

// loaded is a package from the compiler's export data.
func loaded(t *testing.T, path string) *types.Package {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}",
		path).Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(bytes.TrimSpace(out))) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	pkg, err := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	}).Import(path)
	require.NoError(t, err)
	return pkg
}
