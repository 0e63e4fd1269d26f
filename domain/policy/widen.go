package policy

import (
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Widens lists what an overlay would allow though the levels above it do not: words of its allow lists that
// are not allowed above, and ceilings that are higher. An overlay that widens is refused when it is written. If a
// level above becomes narrower later, the overlay still gives nothing back, since every level is checked.
func Widens(above *Effective, below *Document) []fault.Reason {
	var reasons []fault.Reason
	add := func(code fault.Code, path, format string, args ...any) {
		reasons = append(reasons, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: path})
	}
	for at, rules := range below.lists {
		for i, word := range rules.allow {
			if code, message := above.widened(list(at), word); message != "" {
				add(code, fmt.Sprintf("%s.allow.%d", listNames[at], i), "%s", message)
			}
		}
	}
	for at, value := range below.ceilings {
		if most := above.ceilings[at]; value != nil && most.value >= 0 && *value > most.value {
			add(ceilingCodes[at], ceilingNames[at], "%s allows %d %s", above.levels[most.level].ref(), most.value,
				ceilingNouns[at])
		}
	}
	if below.cost == nil {
		return reasons
	}
	for i := range above.levels {
		level := &above.levels[i]
		switch most := level.Document.cost; {
		case most == nil:
		case most.Currency != below.cost.Currency:
			add(fault.SpendingCeiling, hourlyCost+".currency", "%s counts in %s", level.ref(), most.Currency)
		case below.cost.AmountMicros > most.AmountMicros:
			add(fault.SpendingCeiling, hourlyCost+".amountMicros", "%s allows %s an hour", level.ref(), most)
		}
	}
	return reasons
}

// widened returns why a word of an allow list is not allowed; an empty message when it is.
func (e *Effective) widened(of list, word string) (fault.Code, string) {
	for i := range e.levels {
		level := &e.levels[i]
		allowed, denied, final := level.lists[of].contains(of, word)
		switch {
		case final:
			return fault.PlatformFinal, fmt.Sprintf("the platform forbids %q for everyone (%s)", word,
				rulePath(finalWords, listNames[of]))
		case denied:
			return listCodes[of], fmt.Sprintf("%q is denied by %s (%s)", word, level.ref(),
				rulePath(listNames[of], "deny"))
		case !allowed:
			return listCodes[of], fmt.Sprintf("%q is not among those that %s allows (%s)", word, level.ref(),
				rulePath(listNames[of], "allow"))
		}
	}
	return "", ""
}

// contains checks a rule's word, which may cover many values, against the tables: all of it must be
// allowed, and it is denied when nothing of it is left.
func (t *tables) contains(of list, word string) (allowed, denied, final bool) {
	switch of {
	case versions:
		slug, text, _ := strings.Cut(word, "@")
		wanted, _ := parseSpan(text) // the parser has read it before
		named := t.allowed[slug]
		return len(named) == 0 || wanted.covered(named), covers(t.denied[slug], wanted),
			covers(t.forbidden[slug], wanted)
	case sources:
		from, _ := parseSource(word)
		in := func(words map[string]bool) bool { return from.within(func(word string) bool { return words[word] }) }
		return t.allow == nil || in(t.allow), in(t.deny), in(t.final)
	}
	return t.allow == nil || t.allow[word], t.deny[word], t.final[word]
}

func covers(spans []span, wanted span) bool { return len(spans) > 0 && wanted.covered(spans) }
