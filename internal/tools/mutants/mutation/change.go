package mutation

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// number takes the place of the mutant's number in an edit, until that is known at the end.
const number = "\x00"

// counterparts are the operators that change into each other, and the helpers that do it at run time.
var counterparts = map[token.Token]struct {
	to     token.Token
	helper string
}{
	token.LSS: {token.LEQ, "mutantLess"}, token.LEQ: {token.LSS, "mutantLessOrEqual"},
	token.GTR: {token.GEQ, "mutantMore"}, token.GEQ: {token.GTR, "mutantMoreOrEqual"},
	token.EQL: {token.NEQ, ""}, token.NEQ: {token.EQL, ""},
	token.LAND: {token.LOR, "mutantAnd"}, token.LOR: {token.LAND, "mutantOr"},
}

// operator changes a comparison or a logical operator.
func (f *finder) operator(node *ast.BinaryExpr) {
	into, ok := counterparts[node.Op]
	if kept := f.info.Types[node]; !ok || kept.Value != nil || !plainBool(kept.Type) {
		return
	}
	from := f.code(f.file, node)
	left, right := f.code(f.file, node.X), f.code(f.file, node.Y)
	to := fmt.Sprintf("%s %s %s", left, into.to, right)
	switch node.Op {
	case token.EQL, token.NEQ:
		f.negate(f.add(Equality, node, from, to), node)
	case token.LAND, token.LOR:
		f.split(f.add(Logical, node, from, to), node, into.helper, ", func() bool { return (", ") })")
	default:
		f.split(f.add(Boundary, node, from, to), node, into.helper, ",", ")")
	}
}

// plainBool reports whether a type is bool itself: a helper's result has no other.
func plainBool(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// split turns a binary expression into a call of a helper.
func (f *finder) split(m *Mutant, node *ast.BinaryExpr, helper, between, end string) {
	at, operator, stop := f.offset(node.Pos()), f.offset(node.OpPos), f.offset(node.End())
	extent := stop - at
	m.edits = append(m.edits,
		edit{f.file, at, at, helper + "(" + number + ", ", order{opening, extent, 1}},
		edit{f.file, operator, operator + len(node.Op.String()), between, order{middle, 0, 0}},
		edit{f.file, stop, stop, end, order{closing, extent, 1}})
}

// wrap puts text before and after an expression.
func (f *finder) wrap(m *Mutant, node ast.Node, before, after string) {
	at, stop := f.offset(node.Pos()), f.offset(node.End())
	f.wraps++ // of two round one expression the later is the outer one
	m.edits = append(m.edits,
		edit{f.file, at, at, before, order{opening, stop - at, -f.wraps}},
		edit{f.file, stop, stop, after, order{closing, stop - at, -f.wraps}})
}

func (f *finder) negate(m *Mutant, node ast.Expr) {
	f.wrap(m, node, "((", ") != mutantOn("+number+"))")
}

// branch negates a condition. That of a mere comparison with == or != is the mutant of its operator.
func (f *finder) branch(condition ast.Expr) {
	if binary, ok := condition.(*ast.BinaryExpr); ok && (binary.Op == token.EQL || binary.Op == token.NEQ) {
		return
	}
	if kept := f.info.Types[condition]; kept.Value != nil || !plainBool(kept.Type) {
		return
	}
	code := f.code(f.file, condition)
	f.negate(f.add(Branch, condition, "if "+code, "if !("+code+")"), condition)
}

// cases negates each condition of a switch without a value.
func (f *finder) cases(node *ast.SwitchStmt) {
	if node.Tag != nil {
		return
	}
	for _, clause := range node.Body.List {
		for _, condition := range clause.(*ast.CaseClause).List {
			f.branch(condition)
		}
	}
}

// guards leaves out the return at the end of an if without else that is not the last of its block.
func (f *finder) guards(block []ast.Stmt) {
	for i, statement := range block {
		guard, ok := statement.(*ast.IfStmt)
		if !ok || guard.Else != nil || i == len(block)-1 || len(guard.Body.List) == 0 {
			continue
		}
		if last, ok := guard.Body.List[len(guard.Body.List)-1].(*ast.ReturnStmt); ok {
			m := f.add(Return, last, f.code(f.file, last), "left out")
			f.wrap(m, last, "if !mutantOn("+number+") { ", " }")
		}
	}
}

// errors drops the errors of a return statement.
func (f *finder) errors(node *ast.ReturnStmt) {
	if len(node.Results) != len(f.results) {
		return
	}
	for i, result := range node.Results {
		named, ok := f.results[i].(*ast.Ident)
		if kept := f.info.Types[result]; !ok || named.Name != "error" || kept.IsNil() || kept.Type == nil {
			continue
		}
		code := f.code(f.file, result)
		f.wrap(f.add(Error, result, "return "+code, "return nil"), result, "mutantError("+number+", ", ")")
	}
}

// fails reports whether a node returns an error.
func (f *finder) fails(node ast.Node) bool {
	returned, ok := node.(*ast.ReturnStmt)
	if !ok || len(returned.Results) == 0 || len(returned.Results) != len(f.results) {
		return false
	}
	last := len(f.results) - 1
	named, ok := f.results[last].(*ast.Ident)
	return ok && named.Name == "error" && !f.info.Types[returned.Results[last]].IsNil()
}

// number changes a literal; from and to show it in what is closest around it, where that is short. What is returned
// beside an error is left alone: no caller reads it.
func (f *finder) number(node *ast.BasicLit, around []ast.Node) {
	if node.Kind != token.INT || len(around) > 0 && f.fails(around[len(around)-1]) {
		return
	}
	var shown ast.Node = node
	if len(around) > 0 {
		if outer := around[len(around)-1]; outer.End()-outer.Pos() < longest/2 {
			shown = outer
		}
	}
	from := f.code(f.file, shown)
	at := f.offset(node.Pos()) - f.offset(shown.Pos())
	for i, by := range []string{"1", "-1"} {
		if before, ok := f.adding(node, by); ok {
			to := fmt.Sprintf("%s(%s %s 1)%s", from[:at], node.Value, "+-"[i:i+1], from[at+len(node.Value):])
			f.wrap(f.add(Constant, node, from, to), node, before, ")")
		}
	}
}

// use changes a declared constant where it is used.
func (f *finder) use(node *ast.Ident) {
	of, ok := f.declared[f.info.Uses[node]]
	if !ok {
		return
	}
	if before, ok := f.adding(node, of.step); ok {
		f.wrap(of.up, node, before, ")")
	}
	if before, ok := f.adding(node, "-"+of.step); ok {
		f.wrap(of.down, node, before, ")")
	}
}

// adding is the beginning of a call that adds to a constant, in the type that its place gives it.
func (f *finder) adding(node ast.Expr, by string) (string, bool) {
	kept := f.info.Types[node].Type
	if kept == nil {
		return "", false
	}
	kept = types.Default(kept)
	basic, ok := kept.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsInteger|types.IsFloat) == 0 {
		return "", false
	}
	name, ok := f.spell(f.file, kept)
	return fmt.Sprintf("mutantAdd[%s](%s, %s, ", name, number, by), ok
}
