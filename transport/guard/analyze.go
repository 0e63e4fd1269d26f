package guard

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// Guard holds the bounds and the schema they are counted against. It is safe for
// concurrent use.
type Guard struct {
	limits Limits
	schema *ast.Schema
}

// New makes a guard; zero limits take their defaults.
func New(schema *ast.Schema, limits Limits) *Guard {
	return &Guard{limits: limits.withDefaults(), schema: schema}
}

// Limits returns the bounds in force.
func (g *Guard) Limits() Limits { return g.limits }

// Schema returns the schema that costs are counted on.
func (g *Guard) Schema() *ast.Schema { return g.schema }

// Analyze bounds what a parsed document expands to. It runs before validation, so it
// must not rely on the document being valid. The plan it returns prices an operation.
func (g *Guard) Analyze(doc *ast.QueryDocument) (*Plan, *Error) {
	a := analysis{guard: g, fragments: map[string]*fragment{}}
	for _, f := range doc.Fragments {
		if _, dup := a.fragments[f.Name]; dup {
			line, column := place(f.Position)
			return nil, invalid(line, column, "two fragments have the same name")
		}
		a.fragments[f.Name] = &fragment{def: f}
	}
	if refusal := a.expand(doc); refusal != nil {
		return nil, refusal
	}
	if refusal := a.repeats(doc); refusal != nil {
		return nil, refusal
	}
	return &Plan{guard: g, fragments: a.fragments, fixed: map[*ast.OperationDefinition]int64{}}, nil
}

// fragment is one definition and what it expands to, computed once.
type fragment struct {
	def   *ast.FragmentDefinition
	state visit
	size  size
}

type visit uint8

const (
	unseen visit = iota
	open
	done
)

// size is what a selection set expands to: selections in all, nesting, and fields at its top.
type size struct{ fields, depth, top int }

type analysis struct {
	guard     *Guard
	fragments map[string]*fragment
	pairs     int
}

func (a *analysis) expand(doc *ast.QueryDocument) *Error {
	limits := &a.guard.limits
	total := 0
	for _, f := range a.fragments { // unused ones too: validation walks them all
		got, refusal := a.fragment(f)
		if refusal != nil {
			return refusal
		}
		total = min(total+got.fields, limits.ExpandedFields+1)
	}
	for _, op := range doc.Operations {
		got, refusal := a.selection(op.SelectionSet)
		if refusal != nil {
			return refusal
		}
		line, column := place(op.Position)
		if got.depth > limits.Depth {
			return tooLarge(line, column, "the operation nests deeper than %d selection sets", limits.Depth)
		}
		if got.top > limits.RootFields {
			return tooLarge(line, column, "the operation has more than %d root fields", limits.RootFields)
		}
		total = min(total+got.fields, limits.ExpandedFields+1)
	}
	if total > limits.ExpandedFields {
		return tooLarge(0, 0, "the document expands to more than %d fields", limits.ExpandedFields)
	}
	return nil
}

// selection adds up a selection set, saturating one above the limit so that a chain of
// doubling fragments cannot overflow.
func (a *analysis) selection(set ast.SelectionSet) (size, *Error) {
	var sum size
	ceiling := a.guard.limits.ExpandedFields + 1
	for _, sel := range set {
		got, refusal := a.one(sel)
		if refusal != nil {
			return size{}, refusal
		}
		sum.fields = min(sum.fields+got.fields, ceiling)
		sum.top = min(sum.top+got.top, ceiling)
		sum.depth = max(sum.depth, got.depth)
	}
	sum.depth++
	return sum, nil
}

func (a *analysis) one(sel ast.Selection) (size, *Error) {
	switch sel := sel.(type) {
	case *ast.Field:
		if refusal := a.introspects(sel); refusal != nil {
			return size{}, refusal
		}
		if len(sel.SelectionSet) == 0 {
			return size{fields: 1, top: 1}, nil
		}
		got, refusal := a.selection(sel.SelectionSet)
		return size{fields: got.fields + 1, depth: got.depth, top: 1}, refusal
	case *ast.InlineFragment:
		return a.inner(a.selection(sel.SelectionSet))
	case *ast.FragmentSpread:
		if f := a.fragments[sel.Name]; f != nil {
			return a.inner(a.fragment(f))
		}
	}
	return size{fields: 1}, nil // an unknown spread: validation names it
}

// inner is a fragment's size as seen from the set that spreads it: it nests no deeper.
func (a *analysis) inner(got size, refusal *Error) (size, *Error) {
	got.fields++
	got.depth--
	return got, refusal
}

func (a *analysis) fragment(f *fragment) (size, *Error) {
	switch f.state {
	case done:
		return f.size, nil
	case open:
		line, column := place(f.def.Position)
		return size{}, invalid(line, column, "fragments must not spread each other in a circle")
	}
	f.state = open
	got, refusal := a.selection(f.def.SelectionSet)
	f.size, f.state = got, done
	return got, refusal
}

func (a *analysis) introspects(f *ast.Field) *Error {
	if a.guard.limits.Introspection || (f.Name != "__schema" && f.Name != "__type") {
		return nil
	}
	line, column := place(f.Position)
	return invalid(line, column, "introspection is switched off here")
}

// repeats bounds the work of the overlapping-fields rule, which compares selections of
// one response name pair by pair. It expands fragments for real: expand has bounded that.
func (a *analysis) repeats(doc *ast.QueryDocument) *Error {
	for _, op := range doc.Operations {
		if refusal := a.merge([]ast.SelectionSet{op.SelectionSet}); refusal != nil {
			return refusal
		}
	}
	for _, f := range doc.Fragments {
		if refusal := a.merge([]ast.SelectionSet{f.SelectionSet}); refusal != nil {
			return refusal
		}
	}
	return nil
}

type merged struct {
	count int
	sets  []ast.SelectionSet
}

func (a *analysis) merge(sets []ast.SelectionSet) *Error {
	names := map[string]*merged{}
	for _, set := range sets {
		a.collect(set, names, map[string]bool{})
	}
	for _, m := range names {
		a.pairs += m.count * (m.count - 1) / 2
		if a.pairs > a.guard.limits.Repeats {
			return tooLarge(0, 0, "the document repeats fields in more than %d pairs", a.guard.limits.Repeats)
		}
		if len(m.sets) == 0 {
			continue
		}
		if refusal := a.merge(m.sets); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (a *analysis) collect(set ast.SelectionSet, into map[string]*merged, seen map[string]bool) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			m := into[sel.Alias]
			if m == nil {
				m = &merged{}
				into[sel.Alias] = m
			}
			m.count++
			if len(sel.SelectionSet) > 0 {
				m.sets = append(m.sets, sel.SelectionSet)
			}
		case *ast.InlineFragment:
			a.collect(sel.SelectionSet, into, seen)
		case *ast.FragmentSpread:
			if f := a.fragments[sel.Name]; f != nil && !seen[sel.Name] {
				seen[sel.Name] = true
				a.collect(f.def.SelectionSet, into, seen)
			}
		}
	}
}

func place(p *ast.Position) (line, column int) {
	if p == nil {
		return 0, 0
	}
	return p.Line, p.Column
}
