package guard

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// Plan prices the operations of one analysed document. It is safe for concurrent use
// and may be kept with the document.
type Plan struct {
	guard     *Guard
	fragments map[string]*fragment

	mu    sync.RWMutex
	fixed map[*ast.OperationDefinition]int64 // cost of operations whose pages hang on no variable
}

// ceiling stops multiplication long before it could overflow.
const ceiling = math.MaxInt32

// Cost returns the number of values that the operation may request: one for a field, and for a
// list its children times its length. A list's length is its page argument (literal,
// variable or default), the page argument of the connection round it, or a default.
func (p *Plan) Cost(op *ast.OperationDefinition, variables map[string]any) int64 {
	p.mu.RLock()
	cost, ok := p.fixed[op]
	p.mu.RUnlock()
	if ok {
		return cost
	}
	w := pricing{plan: p, op: op, variables: variables, memo: map[memoKey]int64{}}
	cost = w.set(op.SelectionSet, p.root(op), unpaged)
	if !w.varies {
		p.mu.Lock()
		p.fixed[op] = cost
		p.mu.Unlock()
	}
	return cost
}

// Check refuses an operation that costs more than the limit.
func (p *Plan) Check(op *ast.OperationDefinition, variables map[string]any) *Error {
	if p.Cost(op, variables) <= p.guard.limits.Cost {
		return nil
	}
	line, column := place(op.Position)
	return tooLarge(line, column,
		"the operation may read more than %d values: request smaller pages or fewer nested lists", p.guard.limits.Cost)
}

func (p *Plan) root(op *ast.OperationDefinition) *ast.Definition {
	switch op.Operation {
	case ast.Mutation:
		return p.guard.schema.Mutation
	case ast.Subscription:
		return p.guard.schema.Subscription
	default:
		return p.guard.schema.Query
	}
}

// unpaged marks a selection set whose parent set no page size.
const unpaged int64 = -1

type memoKey struct {
	fragment string
	page     int64
}

type pricing struct {
	plan      *Plan
	op        *ast.OperationDefinition
	variables map[string]any
	memo      map[memoKey]int64
	varies    bool
}

// set prices a selection set on a type. page is the size that the parent connection
// gave to the lists directly in it.
func (w *pricing) set(set ast.SelectionSet, on *ast.Definition, page int64) int64 {
	var sum int64
	for _, sel := range set {
		sum = min(sum+w.one(sel, on, page), ceiling)
	}
	return sum
}

func (w *pricing) one(sel ast.Selection, on *ast.Definition, page int64) int64 {
	switch sel := sel.(type) {
	case *ast.Field:
		return w.field(sel, on, page)
	case *ast.InlineFragment:
		if sel.TypeCondition != "" {
			on = w.plan.guard.schema.Types[sel.TypeCondition]
		}
		return w.set(sel.SelectionSet, on, page)
	case *ast.FragmentSpread:
		return w.spread(sel.Name, page)
	}
	return 0
}

func (w *pricing) spread(name string, page int64) int64 {
	f := w.plan.fragments[name]
	if f == nil {
		return 0
	}
	key := memoKey{name, page}
	if cost, ok := w.memo[key]; ok {
		return cost
	}
	cost := w.set(f.def.SelectionSet, w.plan.guard.schema.Types[f.def.TypeCondition], page)
	w.memo[key] = cost
	return cost
}

// introspectionList is the length counted for lists of the schema's own description. No caller
// chooses their real length; this one lets the tools' query pass, but not ten of it.
const introspectionList = 5

func (w *pricing) field(f *ast.Field, on *ast.Definition, page int64) int64 {
	if len(f.SelectionSet) == 0 {
		return 1
	}
	def := w.definition(f, on)
	if def == nil { // unknown here: validation names it, introspection counts flat
		return min(1+w.set(f.SelectionSet, nil, unpaged), ceiling)
	}
	rows, inner := w.length(f, def, page)
	if on != nil && strings.HasPrefix(on.Name, "__") && def.Type.Elem != nil {
		rows = introspectionList
	}
	child := w.set(f.SelectionSet, w.plan.guard.schema.Types[def.Type.Name()], inner)
	return min(1+min(rows, ceiling)*child, ceiling)
}

// length returns how often a field's children count, and what page size its own lists inherit.
func (w *pricing) length(f *ast.Field, def *ast.FieldDefinition, page int64) (rows, inner int64) {
	own, paged := w.page(f, def)
	isList := def.Type.Elem != nil
	switch {
	case isList && paged:
		return own, unpaged
	case isList && page != unpaged:
		return page, unpaged
	case isList:
		return w.plan.guard.limits.DefaultList, unpaged
	case paged:
		return 1, own
	default:
		return 1, unpaged
	}
}

// page returns the size that a field's page arguments set, and whether it takes any.
func (w *pricing) page(f *ast.Field, def *ast.FieldDefinition) (size int64, paged bool) {
	size = -1
	for _, arg := range def.Arguments {
		if !slices.Contains(w.plan.guard.limits.PageArgs, arg.Name) {
			continue
		}
		paged = true
		if n, ok := w.number(f.Arguments.ForName(arg.Name), arg.DefaultValue); ok {
			size = max(size, n)
		}
	}
	if paged && size < 0 {
		size = w.plan.guard.limits.DefaultPage
	}
	return size, paged
}

func (w *pricing) number(given *ast.Argument, fallback *ast.Value) (int64, bool) {
	value := fallback
	if given != nil {
		value = given.Value
	}
	if value == nil {
		return 0, false
	}
	if value.Kind != ast.Variable {
		return parsed(value.Raw)
	}
	w.varies = true
	if v, ok := w.variables[value.Raw]; ok {
		return whole(v)
	}
	if def := w.op.VariableDefinitions.ForName(value.Raw); def != nil && def.DefaultValue != nil {
		return parsed(def.DefaultValue.Raw)
	}
	if fallback != nil {
		return parsed(fallback.Raw)
	}
	return 0, false
}

func (w *pricing) definition(f *ast.Field, on *ast.Definition) *ast.FieldDefinition {
	if f.Definition != nil { // filled in by validation
		return f.Definition
	}
	if on == nil {
		return nil
	}
	return on.Fields.ForName(f.Name)
}

// whole reads a number out of a decoded variable. Anything else counts as not given.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		return parsed(v.String())
	case string:
		return parsed(v)
	case int64:
		return clamp(v), v >= 0
	case int:
		return clamp(int64(v)), v >= 0
	case float64:
		return int64(min(max(v, 0), ceiling)), v >= 0
	}
	return 0, false
}

func parsed(raw string) (int64, bool) {
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil || n < 0 || math.IsNaN(n) {
		return 0, false
	}
	return int64(min(n, ceiling)), true
}

func clamp(n int64) int64 { return min(max(n, 0), ceiling) }
