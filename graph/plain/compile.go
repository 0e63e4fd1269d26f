package plain

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Bounds of the compiled documents: how many are kept, and bytes of their texts together. Beyond
// either all are dropped.
const (
	maxPlans = 512
	maxText  = 512 << 10
)

// firstSize is the buffer of a document's first answer, in bytes.
const firstSize = 4 << 10

// maxSize is the largest buffer that is allocated because earlier answers were large, in bytes.
const maxSize = 1 << 20

// selection is a compiled selection set: what to write of an object.
type selection struct {
	steps  []step
	ahead  bool         // a step is taken for all elements of a list before any is written
	recent atomic.Int64 // length of recent answers, for the root's
}

// step writes one field. key is the text before its value, with the comma or brace that precedes.
type step struct {
	key   string
	fixed string // the whole value, when it does not depend on the object
	field Field
	below *selection
	asked graphql.CollectedField
	args  bool // the field has arguments
	root  bool // the field's function reads the selection from its context
	// gathered is true of a field that is read at once for all objects beside it, and ahead of one that is or has
	// such a field below it.
	gathered, ahead bool
}

func (s *selection) size() int {
	if n := int(s.recent.Load()); n > 0 {
		return min(n+n/8, maxSize)
	}
	return firstSize
}

// answered notes how long an answer was. A large one is forgotten bit by bit.
func (s *selection) answered(n int) {
	before := s.recent.Load()
	s.recent.Store(max(int64(n), before-(before-int64(n))/8))
}

// plans keeps compiled documents by their operation; nil says that one is not plain.
type plans struct {
	mu    sync.RWMutex
	known map[*ast.OperationDefinition]*Plan
	text  int
}

func (p *plans) get(op *graphql.OperationContext, compile func(*graphql.OperationContext) *Plan) *Plan {
	p.mu.RLock()
	found, ok := p.known[op.Operation]
	p.mu.RUnlock()
	if ok {
		return found
	}
	found = compile(op)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPlans || p.text+len(op.RawQuery) > maxText {
		p.known, p.text = make(map[*ast.OperationDefinition]*Plan), 0
	}
	p.known[op.Operation], p.text = found, p.text+len(op.RawQuery)
	return found
}

// compile returns the plan of an operation; nil when some part of it is not in the tables, or depends
// on variables by a directive.
func (e *Executor) compile(op *graphql.OperationContext) *Plan {
	if directed(op.Operation.SelectionSet, op.Doc) {
		return nil
	}
	c := compiler{op: op}
	root := c.selection(op.Operation.SelectionSet, place{of: e.root, root: true})
	if root == nil {
		return nil
	}
	return &Plan{root: root, edges: c.edges}
}

// directed reports whether the document's selections have a directive anywhere. Each fragment is
// read once, wherever it is spread.
func directed(set ast.SelectionSet, doc *ast.QueryDocument) bool {
	if anyDirective(set) {
		return true
	}
	for _, fragment := range doc.Fragments {
		if len(fragment.Directives) > 0 || anyDirective(fragment.SelectionSet) {
			return true
		}
	}
	return false
}

func anyDirective(set ast.SelectionSet) bool {
	for _, one := range set {
		switch one := one.(type) {
		case *ast.Field:
			if len(one.Directives) > 0 || anyDirective(one.SelectionSet) {
				return true
			}
		case *ast.InlineFragment:
			if len(one.Directives) > 0 || anyDirective(one.SelectionSet) {
				return true
			}
		case *ast.FragmentSpread:
			if len(one.Directives) > 0 {
				return true
			}
		}
	}
	return false
}

type compiler struct {
	op    *graphql.OperationContext
	edges []string
}

// place is where a selection set is.
type place struct {
	of     *Type
	root   bool
	listed bool // the object is an element of a list
	loaded bool // the object comes from a loader
}

// selection compiles a selection set.
func (c *compiler) selection(set ast.SelectionSet, at place) *selection {
	of, out, before := at.of, &selection{}, "{"
	for _, asked := range graphql.CollectFields(c.op, set, append([]string{of.Name}, of.Implements...)) {
		s := step{key: before + strconv.Quote(asked.Alias) + ":", asked: asked, root: at.root}
		before = ","
		if asked.Name == "__typename" {
			s.fixed = strconv.Quote(of.Name)
			out.steps = append(out.steps, s)
			continue
		}
		field, ok := of.Fields[asked.Name]
		if !ok || (field.alone && at.listed) {
			return nil
		}
		s.field, s.args = field, len(asked.Definition.Arguments) > 0
		s.gathered = field.gathered || (field.together && at.loaded)
		s.ahead = s.gathered
		if field.get != nil {
			c.edges = append(c.edges, of.Name+"."+asked.Name)
		}
		if field.of != nil {
			s.below = c.selection(asked.Selections, place{of: field.of(), listed: at.listed || field.many,
				loaded: at.loaded || s.gathered})
			if s.below == nil {
				return nil
			}
			s.ahead = s.ahead || s.below.ahead
		}
		out.ahead = out.ahead || s.ahead
		out.steps = append(out.steps, s)
	}
	if len(out.steps) == 0 {
		return nil
	}
	return out
}
