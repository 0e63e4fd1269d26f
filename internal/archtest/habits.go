package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// The bounds of a file and a function, in lines. A test may be longer than another function.
const (
	fileGoal, fileLimit = 350, 500
	functionLimit       = 80
	testLimit           = 100
)

// packageLimit bounds a package, in lines that are neither generated nor tests; so many packages may have a reason.
const packageLimit, packageReasons = 2000, 3

// LargePackages finds packages that one cannot keep in the head.
func LargePackages(tree *Tree) (found []Finding) {
	lines := map[string]int{}
	if len(largePackages) > packageReasons {
		found = append(found, Finding{"internal/archtest/exceptions.go", 1, "", "too many packages have a reason"})
	}
	for _, file := range tree.Written() {
		if file.Test {
			continue
		}
		before := lines[file.Dir]
		lines[file.Dir] += file.Lines
		if before <= packageLimit && lines[file.Dir] > packageLimit {
			found = append(found, Finding{file.Path, 1, file.Dir,
				fmt.Sprintf("with this file %s has more than %d lines: split it", file.Dir, packageLimit)})
		}
	}
	return found
}

// marker is Go's own mark of generated code.
var marker = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Misfiled finds generated code outside of a folder named generated, and written code inside one.
func Misfiled(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if file.AST == nil {
			continue
		}
		switch marked := ast.IsGenerated(file.AST); {
		case marked && !file.Generated:
			found = append(found, Finding{file.Path, 1, file.Path,
				"generated code lies only in folders named generated"})
		case !marked && file.Generated && !marker.Match(file.Source):
			found = append(found, Finding{file.Path, 1, file.Path,
				"written code does not lie in a folder named generated"})
		}
	}
	return found
}

// Undocumented finds packages without a package comment and exported identifiers without a comment.
func Undocumented(tree *Tree) (found []Finding) {
	documented, first := map[string]bool{}, map[string]*File{}
	for _, file := range tree.Written() {
		name := file.Dir + " " + strings.TrimSuffix(file.AST.Name.Name, "_test")
		if first[name] == nil || (first[name].Test && !file.Test) {
			first[name] = file
		}
		documented[name] = documented[name] || file.AST.Doc != nil
		if !file.Test && !strings.HasSuffix(file.Path, ".resolvers.go") { // resolvers have the SDL's descriptions
			found = append(found, undocumented(tree, file)...)
		}
	}
	for name, file := range first {
		if !documented[name] {
			found = append(found, Finding{file.Path, 1, file.Dir,
				"package " + file.AST.Name.Name + " has no package comment"})
		}
	}
	return found
}

// undocumented is every exported declaration of the file that says nothing.
func undocumented(tree *Tree, file *File) (found []Finding) {
	add := func(at token.Pos, name string) {
		found = append(found, Finding{file.Path, tree.line(at), file.Path + " " + name,
			name + " is exported and has no comment"})
	}
	for _, declaration := range file.AST.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			receiver := receiverOf(declaration)
			if declaration.Doc == nil && declaration.Name.IsExported() &&
				(receiver == "" || ast.IsExported(receiver)) && !generatedRoot(file, receiver) {
				add(declaration.Pos(), strings.TrimPrefix(receiver+"."+declaration.Name.Name, "."))
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				if name := bare(declaration, spec); name != "" {
					add(spec.Pos(), name)
				}
			}
		}
	}
	return found
}

// generatedRoot reports whether a method is one of those that the generator writes below the resolvers of a
// noun and keeps as they are: one line that answers the noun's resolver.
func generatedRoot(file *File, receiver string) bool {
	return strings.HasSuffix(file.Path, ".resolvers.go") && receiver == "Resolver"
}

// bare is the exported name that a declaration leaves without a comment; a comment on a group of
// constants or variables speaks for all of them.
func bare(group *ast.GenDecl, spec ast.Spec) string {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && spec.Doc == nil && (group.Doc == nil || group.Lparen.IsValid()) {
			return spec.Name.Name
		}
	case *ast.ValueSpec:
		if spec.Names[0].IsExported() && spec.Doc == nil && spec.Comment == nil && group.Doc == nil {
			return spec.Names[0].Name
		}
	}
	return ""
}

// receiverOf is the name of the type that a method belongs to; empty for a function.
func receiverOf(declaration *ast.FuncDecl) string {
	if declaration.Recv == nil {
		return ""
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
			return inner.Name
		default:
			return ""
		}
	}
}

// LongFiles finds files that have grown beyond what one reads at a sitting: past the goal they need a reason, and past
// the limit no reason helps.
func LongFiles(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		switch {
		case file.Lines > fileLimit:
			found = append(found, Finding{file.Path, fileLimit, "too long: " + file.Path,
				fmt.Sprintf("%d lines: no file is longer than %d", file.Lines, fileLimit)})
		case file.Lines > fileGoal:
			found = append(found, Finding{file.Path, fileGoal, file.Path,
				fmt.Sprintf("%d lines: a file longer than %d needs a reason in the list", file.Lines, fileGoal)})
		}
	}
	return found
}

// LongFunctions finds functions that do too much. A function that is one literal is a table.
func LongFunctions(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		for _, declaration := range file.AST.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil || isTable(function.Body) {
				continue
			}
			limit := functionLimit
			if file.Test {
				limit = testLimit
			}
			name, at := function.Name.Name, tree.line(function.Pos())
			if lines := tree.line(function.End()) - at + 1; lines > limit {
				found = append(found, Finding{file.Path, at, file.Path + " " + name,
					fmt.Sprintf("%s has %d lines: no function here has more than %d", name, lines, limit)})
			}
		}
	}
	return found
}

func isTable(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	answer, ok := body.List[0].(*ast.ReturnStmt)
	if !ok || len(answer.Results) != 1 {
		return false
	}
	_, ok = answer.Results[0].(*ast.CompositeLit)
	return ok
}

// Sleeping finds tests and kits that wait for time to pass instead of for what they wait for.
func Sleeping(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if !file.Test && !isKit(file.Dir) {
			continue
		}
		for _, at := range calls(file.AST, "time", []string{"Sleep"}) {
			found = append(found, Finding{file.Path, tree.line(at.Pos()), file.Path,
				"a test waits for a state with a deadline, not for time to pass"})
		}
	}
	return found
}

// Hidden finds what happens without being called or passed in: init functions, the global logger, and exits anywhere
// but in a main package.
func Hidden(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		add := func(at token.Pos, text string) {
			found = append(found, Finding{file.Path, tree.line(at), file.Path, text})
		}
		for _, declaration := range file.AST.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Name.Name == "init" && function.Recv == nil {
				add(function.Pos(), "nothing happens by importing a package: no init function")
			}
		}
		for _, spec := range imports(file) {
			if pathOf(spec) == "log" && !file.Test {
				add(spec.Pos(), "logs go through log/slog")
			}
		}
		if file.AST.Name.Name == "main" || file.Test {
			continue
		}
		for _, at := range calls(file.AST, "os", []string{"Exit"}) {
			add(at.Pos(), "main alone ends the program")
		}
	}
	return found
}

// unfinished is how people mark what they did not do.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// Unfinished finds marks of work left undone.
func Unfinished(tree *Tree) (found []Finding) {
	for _, file := range tree.Files {
		if file.Generated || within(file.Dir, "internal/archtest") {
			continue
		}
		for i, line := range strings.Split(string(file.Source), "\n") {
			if word := unfinished.FindString(line); word != "" {
				found = append(found, Finding{file.Path, i + 1, file.Path, word + ": finish it or open an issue"})
			}
		}
	}
	return found
}

// Serial finds tests that do not say that they may run beside others. One that sets the process's
// environment or folder cannot: the testing package forbids it.
func Serial(tree *Tree) (found []Finding) {
	for _, file := range tree.Written() {
		if !file.Test {
			continue
		}
		for _, declaration := range file.AST.Decls {
			test, ok := declaration.(*ast.FuncDecl)
			if !ok || test.Recv != nil || !strings.HasPrefix(test.Name.Name, "Test") || test.Name.Name == "TestMain" ||
				len(test.Type.Params.List) != 1 {
				continue
			}
			if !mentions(test.Body, "Parallel") && !mentions(test.Body, "Setenv") && !mentions(test.Body, "Chdir") {
				found = append(found, Finding{file.Path, tree.line(test.Pos()),
					file.Dir + " " + test.Name.Name, test.Name.Name + " is not parallel"})
			}
		}
	}
	return found
}

func mentions(in ast.Node, method string) (yes bool) {
	ast.Inspect(in, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == method {
			yes = true
		}
		return !yes
	})
	return yes
}
