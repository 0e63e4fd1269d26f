package columns

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Comparison is a column with the states that a statement compares it with or writes into it.
type Comparison struct {
	// Column is how the statement names it.
	Column string
	// States are the literals, in the statement's order.
	States []string
	// Types are the Go types of the columns that it can be; empty where the statement does not say which table it is
	// of, or where the table's column has no Go type.
	Types []string
}

// ref is a column, or a parameter, at a place of a statement: next is the place after it.
type ref struct {
	alias, name string
	at, next    int
}

// Comparisons returns the comparisons and assignments with states in a statement. One that begins or ends
// within a quoted text has no tables.
func Comparisons(statement string, schema Schema) (found []Comparison) {
	s, whole := lex(statement)
	if !whole {
		return inFragment(statement)
	}
	p := parse(s, schema)
	for i := range s {
		column, ok := p.refAt(i)
		if !ok {
			continue
		}
		if states := p.states(column); len(states) > 0 {
			found = append(found, Comparison{column.String(), states, p.types(column)})
		}
	}
	return found
}

// String returns the column as the statement names it.
func (r ref) String() string {
	if r.alias == "" {
		return r.name
	}
	return r.alias + "." + r.name
}

// refAt returns the column that begins at a place, and false when none does. The right side of an operator on JSON or
// texts is a part of an expression.
func (p *parser) refAt(i int) (ref, bool) {
	if p.at(i-1) == "." || combines(p.at(i-1)) {
		return ref{}, false
	}
	name := p.at(i)
	if strings.HasPrefix(name, "$") && len(name) > 1 {
		return ref{name: name, at: i, next: i + 1}, true
	}
	if !isName(name) || name == "not" {
		return ref{}, false
	}
	found := ref{name: name, at: i, next: i + 1}
	for p.at(found.next) == "." && isName(p.at(found.next+1)) {
		found.alias, found.name = found.name, p.at(found.next+1)
		found.next += 2
	}
	return found, true
}

// states returns the literals that a column is compared with or set to.
func (p *parser) states(column ref) (found []string) {
	i := column.next
	if p.at(column.at-1) == "case" && p.at(i) == "when" {
		return p.branches(column.at-1, "when")
	}
	// 'READY' = status, where the text is not the right side of an operator itself
	if before := p.at(column.at - 3); equals(p.at(column.at-1)) && !equals(before) && !combines(before) {
		found = p.literal(column.at - 2)
	}
	if p.at(column.at-2) == "coalesce" && p.at(i) == "," && isText(p.at(i+1)) && p.at(i+2) == ")" {
		if otherwise := unquoted(p.at(i + 1)); otherwise != "" {
			found = append(found, otherwise)
		}
		i += 3
	}
	not := i
	if p.at(i) == "not" {
		not++
	}
	switch {
	case equals(p.at(i)):
		return append(found, p.value(i+1)...)
	case p.at(not) == "in" && p.at(not+1) == "(":
		return append(found, p.list(not+1, ")")...)
	case p.at(i) == "is":
		if p.at(i+1) == "not" {
			i++
		}
		if p.at(i+1) == "distinct" && p.at(i+2) == "from" {
			return append(found, p.value(i+3)...)
		}
	}
	return found
}

// combines reports whether the piece is an operator on JSON or texts.
func combines(piece string) bool { return piece == "->" || piece == "->>" || piece == "||" }

func equals(piece string) bool { return piece == "=" || piece == "<>" || piece == "!=" }

// value returns the literals that the value at a place may be.
func (p *parser) value(i int) []string {
	switch {
	case p.at(i) == "case":
		return p.branches(i, "then", "else")
	case (p.at(i) == "any" || p.at(i) == "all") && p.at(i+1) == "(":
		if p.at(i+2) == "array" {
			return p.list(i+3, "]")
		}
		var found []string
		for _, text := range p.literal(i + 2) {
			found = append(found, strings.FieldsFunc(text, inArray)...)
		}
		return found
	}
	return p.literal(i)
}

// inArray reports whether a character is between the elements of an array's text.
func inArray(r rune) bool { return strings.ContainsRune(`{}", `, r) }

// literal returns the text at a place, unless it is a part of an expression.
func (p *parser) literal(i int) []string {
	if !isText(p.at(i)) || p.at(i+1) == "||" || strings.Contains(p.at(i), elsewhere) {
		return nil
	}
	return []string{unquoted(p.at(i))}
}

// list returns the literals of a list that begins at a place, up to a query or a call in it.
func (p *parser) list(i int, end string) (found []string) {
	for i++; p.at(i) != "" && p.at(i) != end && p.at(i) != "("; i++ {
		if p.at(i-1) == "," || p.at(i-1) == "(" || p.at(i-1) == "[" {
			found = append(found, p.literal(i)...)
		}
	}
	return found
}

// branches returns the literals that follow one of the keywords in the CASE at a place, and not in a CASE or
// parentheses within it.
func (p *parser) branches(i int, keywords ...string) (found []string) {
	depth := 0
	for ; p.at(i) != ""; i++ {
		switch p.at(i) {
		case "case", "(":
			depth++
		case "end", ")":
			depth--
		default:
			if depth == 1 && slices.Contains(keywords, p.at(i)) {
				found = append(found, p.literal(i+1)...)
			}
		}
		if depth <= 0 {
			break
		}
	}
	return found
}

// types returns the Go types of the columns that a name can be; empty when that is not sure. A name without an alias is
// of the innermost tables that have it, since PostgreSQL refuses one that two relations of a query have.
func (p *parser) types(column ref) (found []string) {
	if strings.HasPrefix(column.name, "$") {
		return p.typesOfParameter(column.name)
	}
	for at := p.scopes[column.at]; at != nil; at = at.around {
		tables, known := at.tables[column.alias]
		if column.alias == "" {
			tables, known = at.having(column.name, p.schema)
		}
		if !known {
			if column.alias == "" && at.open {
				return nil
			}
			continue
		}
		for _, table := range tables {
			goType := p.schema[table][column.name]
			if goType == "" {
				return nil
			}
			found = append(found, goType)
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	return nil
}

// typesOfParameter returns the types of the first column that a parameter is compared with or written into.
func (p *parser) typesOfParameter(name string) []string {
	for i := range p.sql {
		column, ok := p.refAt(i)
		if ok && !strings.HasPrefix(column.name, "$") && equals(p.at(column.next)) && p.at(column.next+1) == name {
			if found := p.types(column); len(found) > 0 {
				return found
			}
		}
	}
	return nil
}

// having returns the scope's tables that have a column, and false when none has it.
func (s *scope) having(column string, schema Schema) (tables []string, some bool) {
	for _, of := range s.tables {
		for _, table := range of {
			if _, has := schema[table][column]; has {
				tables = append(tables, table)
			}
		}
	}
	return tables, len(tables) > 0
}

// stateLike is a literal that can be a state where the column does not say it.
var stateLike = regexp.MustCompile(`^[A-Z][A-Z_]+$`)

// Problem says which state the column cannot have; empty when it can have each. The words are the states of each Go
// type. Where the column's types are not known, the states must all be of one type.
func (c Comparison) Problem(words map[string][]string) string {
	unknown := func(name string) bool { return len(words[name]) == 0 }
	if len(c.Types) == 0 || slices.ContainsFunc(c.Types, unknown) {
		return c.mixed(words)
	}
	for _, state := range c.States {
		if !slices.ContainsFunc(c.Types, func(name string) bool { return slices.Contains(words[name], state) }) {
			return fmt.Sprintf("%s is of type %s, which has no '%s'", c.Column, strings.Join(c.Types, " or "), state)
		}
	}
	return ""
}

// mixed says that no one type has all the literals that can be states; empty when one has.
func (c Comparison) mixed(words map[string][]string) string {
	unlike := func(text string) bool { return !stateLike.MatchString(text) }
	states := slices.DeleteFunc(slices.Clone(c.States), unlike)
	if len(states) == 0 {
		return ""
	}
	for _, all := range words {
		if !slices.ContainsFunc(states, func(state string) bool { return !slices.Contains(all, state) }) {
			return ""
		}
	}
	return fmt.Sprintf("%s goes with '%s': no one type of states has that", c.Column, strings.Join(states, "', '"))
}

// fragment is a column with its states in a text that has no columns to resolve; quoted is one of them.
var (
	fragment = regexp.MustCompile(`\b([a-z_.]+) *(?:=|<>|!=|(?:NOT )?IN) *\(?((?:'[A-Z][A-Z_]+'(?:, *)?)+)`)
	quoted   = regexp.MustCompile(`'([A-Z][A-Z_]+)'`)
)

// inFragment returns the comparisons in a text that begins or ends within a quoted text.
func inFragment(text string) (found []Comparison) {
	for _, match := range fragment.FindAllStringSubmatch(text, -1) {
		comparison := Comparison{Column: match[1]}
		for _, state := range quoted.FindAllStringSubmatch(match[2], -1) {
			comparison.States = append(comparison.States, state[1])
		}
		found = append(found, comparison)
	}
	return found
}
