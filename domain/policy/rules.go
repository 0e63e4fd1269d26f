package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Rules lists every rule that holds with its origin, by dimension, widest level first.
func (e *Effective) Rules() []*Rule {
	out := []*Rule{}
	for at := range int(lists) {
		for i := range e.levels {
			out = append(out, e.levels[i].listed(list(at))...)
		}
	}
	for at := range int(ceilings) {
		for i := range e.levels {
			if most := e.levels[i].Document.ceilings[at]; most != nil {
				out = append(out, e.levels[i].ceiling(ceilingNames[at], *most,
					fmt.Sprintf("at most %d %s", *most, ceilingNouns[at])))
			}
		}
	}
	for i := range e.levels {
		if most := e.levels[i].Document.cost; most != nil {
			out = append(out, e.levels[i].ceiling(hourlyCost, int(most.AmountMicros),
				fmt.Sprintf("at most %s an hour by the price book", most)))
		}
	}
	return out
}

// listed are the rules of one level on a dimension.
func (c *compiled) listed(of list) []*Rule {
	var out []*Rule
	add := func(effect Effect, final bool, words map[string]bool, message string) {
		out = append(out, &Rule{Dimension: listNames[of], Effect: effect, Values: slices.Sorted(maps.Keys(words)),
			Origin:    c.Scope,
			OverlayID: c.id(of, effect), Final: final, Message: message})
	}
	t := c.lists[of]
	if len(t.final) > 0 {
		add(Deny, true, t.final, "the platform forbids "+amount(of, len(t.final))+
			" for everyone, and no overlay can allow them")
	}
	switch {
	case t.allow == nil:
	case c.implied[of]:
		add(Allow, false, t.allow, "any other "+listNouns[of]+" must be allowed by the platform by name")
	case len(t.allow) == 0:
		add(Allow, false, t.allow, c.ref()+" allows no "+listNouns[of])
	case of == versions:
		add(Allow, false, t.allow, c.ref()+" allows no other versions of the apps that it names")
	default:
		add(Allow, false, t.allow, c.ref()+" allows only "+amount(of, len(t.allow)))
	}
	if len(t.deny) > 0 {
		add(Deny, false, t.deny, c.ref()+" denies "+amount(of, len(t.deny)))
	}
	return out
}

func amount(of list, n int) string {
	if n == 1 {
		return "one " + listNouns[of]
	}
	return strconv.Itoa(n) + " " + plural(listNouns[of])
}

func plural(noun string) string {
	if one, what, ok := strings.Cut(noun, " of "); ok {
		return plural(one) + " of " + what
	}
	if strings.HasSuffix(noun, "s") {
		return noun + "es"
	}
	return noun + "s"
}

func (c *compiled) ceiling(name string, most int, message string) *Rule {
	return &Rule{Dimension: name, Effect: Ceiling, Values: []string{}, Limit: &most, Origin: c.Scope,
		OverlayID: c.OverlayID,
		Message:   strings.ToLower(string(c.Scope)) + ": " + message}
}
