package columns

import "slices"

// scope is one SELECT, UPDATE, INSERT or DELETE of a statement, within the one around it.
type scope struct {
	around *scope
	// tables are those of each alias; an empty name is a relation that is not a table of the schema.
	tables map[string][]string
	// open reports that a relation has no table of the schema, so that a column may be its own.
	open bool
}

// frame is a pair of parentheses, or the whole statement.
type frame struct {
	scope *scope
	// query reports that the scope is the frame's own.
	query bool
	// from reports that the parser is in a FROM, where a comma begins another relation.
	from bool
	// relation reports that the frame is a relation, so that an alias follows it.
	relation bool
}

// parser finds which scope each piece of a statement is in.
type parser struct {
	sql
	schema Schema
	// shadows are the names of WITH, which are not tables.
	shadows []string
	frames  []*frame
	// scopes has the scope of each piece.
	scopes []*scope
	// relation is the place of the parenthesis that begins a relation; 0 for none.
	relation int
}

// queries are the keywords that begin a scope after a parenthesis.
var queries = []string{"select", "with", "insert", "update", "delete", "values"}

// unaliased are the keywords that follow a relation without an alias.
var unaliased = []string{"where", "on", "join", "left", "right", "inner", "full", "cross", "natural", "order",
	"group", "limit", "set", "for", "union", "except", "intersect", "returning", "using", "having", "values", "select",
	"default", "window", "fetch", "offset", "loop", "then", "with", "do", "when", elsewhere}

// parse returns the statement's pieces with their scopes.
func parse(s sql, schema Schema) *parser {
	p := &parser{sql: s, schema: schema, scopes: make([]*scope, len(s))}
	p.frames = []*frame{{scope: inside(nil), query: true}}
	for i := range s {
		if s.at(i+1) == "as" && slices.Contains([]string{"with", "recursive", ","}, s.at(i-1)) && s.begins(i+2) {
			p.shadows = append(p.shadows, s[i])
		}
	}
	for i := range s {
		p.step(i)
		p.scopes[i] = p.top().scope
	}
	return p
}

func inside(around *scope) *scope { return &scope{around: around, tables: map[string][]string{}} }

// begins reports whether a query in parentheses begins at a place, after what WITH may say of it.
func (s sql) begins(i int) bool {
	for s.at(i) == "not" || s.at(i) == "materialized" {
		i++
	}
	return s.at(i) == "(" && slices.Contains(queries, s.at(i+1))
}

func (p *parser) top() *frame { return p.frames[len(p.frames)-1] }

// step reads one piece.
func (p *parser) step(i int) {
	top := p.top()
	switch p.at(i) {
	case "(":
		p.push(i)
	case ")":
		p.pop(i)
	case ";", "union", "except", "intersect":
		p.beside()
	case "from":
		if top.query && p.at(i-1) != "distinct" {
			top.from = true
			p.related(i+1, false)
		}
	case "join":
		p.related(i+1, false)
	case ",":
		if top.from {
			p.related(i+1, false)
		}
	case "into":
		p.related(i+1, true)
	case "using":
		if p.at(i+1) != "(" {
			p.related(i+1, false)
		}
	case "update":
		if !slices.Contains([]string{"for", "do", "key"}, p.at(i-1)) {
			p.related(i+1, true)
		}
	case "where", "group", "order", "having", "limit", "returning", "set", "select", "window":
		top.from = false
	case elsewhere:
		top.scope.open = true
	}
}

// push enters parentheses.
func (p *parser) push(i int) {
	within := &frame{scope: p.top().scope, relation: i == p.relation && i > 0}
	if p.begins(i) {
		within.scope, within.query = inside(within.scope), true
	}
	p.frames = append(p.frames, within)
}

// pop leaves parentheses. Those of a fragment may have begun before it: what follows is around what came before, which
// may have more relations.
func (p *parser) pop(i int) {
	left := p.top()
	if len(p.frames) > 1 {
		p.frames = p.frames[:len(p.frames)-1]
	} else {
		around := inside(nil)
		left.scope.around, left.scope.open = around, true
		p.frames[0] = &frame{scope: around, query: true}
	}
	if left.relation {
		p.alias(i+1, "", "")
	}
}

// beside begins the scope of a query that follows another one.
func (p *parser) beside() {
	top := p.top()
	around := top.scope
	if top.query {
		around = top.scope.around
	}
	top.scope, top.query, top.from = inside(around), true, false
}

// related reads the relation at a place. A table that is written is not a call, though a parenthesis follows it.
func (p *parser) related(i int, written bool) {
	for slices.Contains([]string{"only", "lateral", "strict"}, p.at(i)) {
		i++
	}
	name := p.at(i)
	switch {
	case name == "(":
		p.relation = i
		return
	case !isName(name) || name == elsewhere:
		p.top().scope.open = true
		return
	}
	for p.at(i+1) == "." {
		if name != "public" {
			name = elsewhere // another schema's
		} else {
			name = p.at(i + 2)
		}
		i += 2
	}
	if p.at(i+1) == "(" && !written {
		p.relation = i + 1
		return
	}
	table := name
	if p.schema[name] == nil || slices.Contains(p.shadows, name) {
		table = ""
	}
	if written && table != "" {
		p.top().scope.tables["excluded"] = []string{table}
	}
	p.alias(i+1, table, p.at(i))
}

// alias reads the name that a relation has in its scope, which is its own when no other follows.
func (p *parser) alias(i int, table, name string) {
	if p.at(i) == "with" && p.at(i+1) == "ordinality" {
		i += 2
	}
	if p.at(i) == "as" {
		i++
	}
	if alias := p.at(i); isName(alias) && !slices.Contains(unaliased, alias) {
		name = alias
	}
	within := p.top().scope
	within.tables[name] = append(within.tables[name], table)
	within.open = within.open || table == ""
}
