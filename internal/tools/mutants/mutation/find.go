package mutation

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// find returns every mutant of the package, by file and line, numbered from 1.
func find(s *source) []*Mutant {
	f := &finder{source: s, declared: map[types.Object]declared{}}
	names := slices.Sorted(maps.Keys(s.files))
	for _, f.file = range names {
		if !ast.IsGenerated(s.files[f.file]) {
			f.declarations()
		}
	}
	for _, f.file = range names {
		if !ast.IsGenerated(s.files[f.file]) {
			f.walk()
		}
	}
	// constants that are not used
	found := slices.DeleteFunc(f.found, func(m *Mutant) bool { return len(m.edits) == 0 })
	slices.SortStableFunc(found, func(a, b *Mutant) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	alike := map[string]int{}
	for i, mutant := range found {
		name := mutant.Name()
		mutant.Number, mutant.Again = i+1, alike[name]
		alike[name]++
	}
	return found
}

// finder walks the package's files.
type finder struct {
	*source
	file     string
	around   string     // the function or declaration that is walked
	results  []ast.Expr // the result types of the function, one for each result
	found    []*Mutant
	declared map[types.Object]declared
	wraps    int // made so far
}

// declared is a constant with a whole number of its own: by how much it changes, and the mutants that do it.
type declared struct {
	step     string
	up, down *Mutant
}

// walk visits everything of a file that is computed at run time.
func (f *finder) walk() {
	for _, declaration := range f.files[f.file].Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			f.around = functionName(declaration)
			f.function(declaration.Type, declaration.Body)
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && declaration.Tok == token.VAR {
					f.around = value.Names[0].Name
					f.nodes(value)
				}
			}
		}
	}
}

// function visits a body, knowing what it returns.
func (f *finder) function(kind *ast.FuncType, body *ast.BlockStmt) {
	if body == nil {
		return
	}
	before := f.results
	f.results = nil
	if kind.Results != nil {
		for _, field := range kind.Results.List {
			f.results = append(f.results, slices.Repeat([]ast.Expr{field.Type}, max(1, len(field.Names)))...)
		}
	}
	f.nodes(body)
	f.results = before
}

// nodes visits a node and what is below it, but for constant places such as the length of an array. around are the
// nodes that the root is in, the closest last.
func (f *finder) nodes(root ast.Node, around ...ast.Node) {
	ast.Inspect(root, func(node ast.Node) (below bool) {
		if node == nil {
			around = around[:len(around)-1]
			return false
		}
		defer func() {
			if below {
				around = append(around, node)
			}
		}()
		switch node := node.(type) {
		case *ast.GenDecl:
			return node.Tok == token.VAR
		case *ast.ArrayType:
			return false
		case *ast.FuncLit:
			f.function(node.Type, node.Body)
			return false
		case *ast.CompositeLit:
			f.elements(node)
			return false
		case *ast.BinaryExpr:
			f.operator(node)
		case *ast.IfStmt:
			f.branch(node.Cond)
		case *ast.SwitchStmt:
			f.cases(node)
		case *ast.BlockStmt:
			f.guards(node.List)
		case *ast.CaseClause:
			f.guards(node.Body)
		case *ast.ReturnStmt:
			f.errors(node)
		case *ast.BasicLit:
			f.number(node, around)
		case *ast.Ident:
			f.use(node)
		}
		return true
	})
}

// elements visits a literal's elements. The keys of an array are constants.
func (f *finder) elements(literal *ast.CompositeLit) {
	mapped := false
	if t := f.info.TypeOf(literal); t != nil {
		_, mapped = t.Underlying().(*types.Map)
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			f.nodes(element)
			continue
		}
		if mapped {
			f.nodes(pair.Key)
		}
		f.nodes(pair.Value, pair)
	}
}

// add notes a mutant of a node; its edits follow.
func (f *finder) add(kind Kind, node ast.Node, from, to string) *Mutant {
	line := f.fset.Position(node.Pos()).Line
	made := &Mutant{Kind: kind, File: f.file, Line: line, Func: f.around, From: brief(from), To: brief(to)}
	f.found = append(f.found, made)
	return made
}

// declarations notes the constants that have a whole number of their own. They change where they are used.
func (f *finder) declarations() {
	for _, declaration := range f.files[f.file].Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			for i, expression := range value.Values {
				f.around = value.Names[i].Name
				f.declare(value.Names[i], expression)
			}
		}
	}
}

func (f *finder) declare(name *ast.Ident, expression ast.Expr) {
	value := f.info.Types[expression].Value
	object := f.types.Scope().Lookup(name.Name)
	step, ok := f.step(expression)
	if value == nil || value.Kind() != constant.Int || object == nil || !ok {
		return
	}
	code := f.code(f.file, expression)
	f.declared[object] = declared{
		step: step.ExactString(),
		up:   f.add(Constant, name, code, code+" + "+step.String()),
		down: f.add(Constant, name, code, code+" - "+step.String()),
	}
}

// step returns by how much a constant changes when its number changes by one: 1 of `7`, a minute of
// `10 * time.Minute`, 1024 of `64 << 10`.
func (f *finder) step(expression ast.Expr) (constant.Value, bool) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		return constant.MakeInt64(1), expression.Kind == token.INT
	case *ast.ParenExpr:
		return f.step(expression.X)
	case *ast.BinaryExpr:
		left, number := expression.X.(*ast.BasicLit)
		factor := f.info.Types[expression.Y].Value
		switch {
		case factor == nil || factor.Kind() != constant.Int:
			return nil, false
		case number && expression.Op == token.MUL:
			return factor, true
		case number && left.Kind == token.INT && expression.Op == token.SHL:
			count, _ := constant.Uint64Val(factor)
			return constant.Shift(constant.MakeInt64(1), token.SHL, uint(count)), true
		}
	}
	return nil, false
}

// functionName is a function's name; a method's with its type.
func functionName(declaration *ast.FuncDecl) string {
	if declaration.Recv == nil {
		return declaration.Name.Name
	}
	kind := declaration.Recv.List[0].Type
	for {
		switch inner := kind.(type) {
		case *ast.StarExpr:
			kind = inner.X
		case *ast.IndexExpr:
			kind = inner.X
		case *ast.IndexListExpr:
			kind = inner.X
		case *ast.Ident:
			return inner.Name + "." + declaration.Name.Name
		default:
			return declaration.Name.Name
		}
	}
}
