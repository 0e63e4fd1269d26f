package runbook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Facts are what is known, by the facts' names. One name may have several values, such as the states of several nodes.
type Facts map[string][]string

// Add adds values to a fact; empty ones are left out.
func (f Facts) Add(fact string, values ...string) {
	for _, value := range values {
		if value != "" && !slices.Contains(f[fact], value) {
			f[fact] = append(f[fact], value)
		}
	}
}

// Op is how a condition compares.
type Op string

// The comparisons.
const (
	OpIs    Op = "is"
	OpNot   Op = "is not"
	OpHas   Op = "contains"
	OpAbove Op = "above"
	OpBelow Op = "below"
	OpSome  Op = "present"
	OpNone  Op = "absent"
)

// Condition is something about one fact.
type Condition struct {
	Fact string
	Op   Op
	// Values are texts of which one is enough, or the one bound of a number.
	Values []string
}

// Is holds when the fact has one of the values.
func Is(fact string, values ...string) Condition { return Condition{fact, OpIs, values} }

// Not holds when the fact has none of the values.
func Not(fact string, values ...string) Condition { return Condition{fact, OpNot, values} }

// Has holds when a value of the fact contains one of the texts.
func Has(fact string, texts ...string) Condition { return Condition{fact, OpHas, texts} }

// Above holds when a value of the fact is a number above the bound.
func Above(fact string, bound float64) Condition {
	return Condition{fact, OpAbove, []string{number(bound)}}
}

// Below holds when a value of the fact is a number below the bound.
func Below(fact string, bound float64) Condition {
	return Condition{fact, OpBelow, []string{number(bound)}}
}

// Some holds when the fact has a value.
func Some(fact string) Condition { return Condition{fact, OpSome, nil} }

// None holds when the fact has no value.
func None(fact string) Condition { return Condition{fact, OpNone, nil} }

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// Holds reports whether the facts meet the condition.
func (c Condition) Holds(facts Facts) bool {
	if c.Op == OpSome || c.Op == OpNone {
		return (len(facts[c.Fact]) > 0) == (c.Op == OpSome)
	}
	return slices.ContainsFunc(facts[c.Fact], c.meets) != (c.Op == OpNot)
}

// meets reports whether one value does.
func (c Condition) meets(value string) bool {
	return slices.ContainsFunc(c.Values, func(wanted string) bool {
		switch c.Op {
		case OpIs, OpNot:
			return value == wanted
		case OpHas:
			return strings.Contains(value, wanted)
		case OpAbove, OpBelow:
			have, bad := strconv.ParseFloat(value, 64)
			bound, worse := strconv.ParseFloat(wanted, 64)
			return bad == nil && worse == nil && (c.Op == OpAbove && have > bound || c.Op == OpBelow && have < bound)
		case OpSome, OpNone:
		}
		return false
	})
}

// String is the condition in Markdown.
func (c Condition) String() string {
	values := "`" + strings.Join(c.Values, "` or `") + "`"
	switch c.Op {
	case OpNone:
		return fmt.Sprintf("no `%s`", c.Fact)
	case OpSome:
		return fmt.Sprintf("some `%s`", c.Fact)
	case OpAbove, OpBelow:
		return fmt.Sprintf("`%s` %s %s", c.Fact, c.Op, c.Values[0])
	case OpIs, OpNot, OpHas:
	}
	return fmt.Sprintf("`%s` %s %s", c.Fact, c.Op, values)
}

// Conditions are all that has to hold for the edge: its codes, their step and its facts.
func (e Edge) Conditions() (all []Condition) {
	if len(e.On) > 0 {
		all = append(all, Is(FactCode, e.On...))
	}
	if e.Step != "" {
		all = append(all, Is(FactStep, e.Step))
	}
	return append(all, e.When...)
}

// taken prints the conditions.
func (e Edge) taken() string {
	var parts []string
	for _, condition := range e.Conditions() {
		parts = append(parts, condition.String())
	}
	return strings.Join(parts, ", ")
}

// Taken reports whether the facts take the edge. An edge that only a person sees is never taken.
func (e Edge) Taken(facts Facts) bool {
	conditions := e.Conditions()
	if e.Person != "" || len(conditions) == 0 {
		return false
	}
	return !slices.ContainsFunc(conditions, func(c Condition) bool { return !c.Holds(facts) })
}

// Walk makes the checks of the runbook in their order and returns the place of the first edge that the facts take, as
// check/edge, with the edge; false where none is taken.
func (r Runbook) Walk(facts Facts) (string, Edge, bool) {
	for _, check := range r.Checks {
		for _, edge := range check.Edges {
			if edge.Taken(facts) {
				return check.Key + "/" + edge.Key, edge, true
			}
		}
	}
	return "", Edge{}, false
}
