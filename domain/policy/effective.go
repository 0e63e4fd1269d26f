package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Effective is what the overlays leave of a project's choices. It is immutable: concurrent callers may share it.
type Effective struct {
	levels []compiled
	// ceilings are the lowest of each, and the levels that set them; -1 for none.
	ceilings [ceilings]limit
}

// compiled is one level as look-up tables.
type compiled struct {
	Level
	lists [lists]tables
	// implied marks the platform's default allow lists, which no overlay holds.
	implied [lists]bool
}

// tables are one dimension of one level.
type tables struct {
	allow, deny, final map[string]bool // allow is nil when there is no such list
	// spans are those of versions, by app.
	allowed, denied, forbidden map[string][]span
}

type limit struct {
	value, level int
}

// implied is what the platform allows of a dimension without an allow list of its own; nil for everything.
var implied = [lists][]string{
	modes:    {string(lifecycle.ModeTenantDedicated)},
	purposes: {"artifact_pull"},
}

// Merge returns what the overlays of the levels, widest first, leave together. Without one of the platform, the
// platform's defaults apply.
func Merge(levels ...Level) *Effective {
	e := unbound()
	if !slices.ContainsFunc(levels, func(l Level) bool { return l.Scope == lifecycle.PolicyPlatform }) {
		e = e.and(single(Level{Scope: lifecycle.PolicyPlatform, Document: &Document{}}))
	}
	for _, level := range levels {
		e = e.and(single(level))
	}
	return e
}

func unbound() *Effective {
	e := &Effective{}
	for i := range e.ceilings {
		e.ceilings[i].value = -1
	}
	return e
}

// single returns what one level leaves.
func single(level Level) *Effective {
	e := unbound()
	made := compiled{Level: level}
	for at := range made.lists {
		of := list(at)
		rules := level.Document.lists[at]
		if rules.allow == nil && level.Scope == lifecycle.PolicyPlatform && implied[at] != nil {
			rules.allow, made.implied[at] = implied[at], true
		}
		made.lists[at] = compile(of, rules, level.Document.final[at])
	}
	for at, value := range level.Document.ceilings {
		if value != nil {
			e.ceilings[at] = limit{value: *value}
		}
	}
	e.levels = []compiled{made}
	return e
}

func compile(of list, rules words, final []string) tables {
	t := tables{deny: set(rules.deny), final: set(final)}
	if rules.allow != nil {
		t.allow = set(rules.allow)
	}
	if of == versions {
		t.allowed, t.denied, t.forbidden = spans(rules.allow), spans(rules.deny), spans(final)
	}
	return t
}

func set(words []string) map[string]bool {
	made := make(map[string]bool, len(words))
	for _, word := range words {
		made[word] = true
	}
	return made
}

// spans returns the constraints of each app.
func spans(words []string) map[string][]span {
	made := make(map[string][]span, len(words))
	for _, word := range words {
		slug, text, _ := strings.Cut(word, "@")
		one, _ := parseSpan(text) // the parser has read it before
		made[slug] = append(made[slug], one)
	}
	return made
}

// and returns what both leave; the levels of below are narrower than those of e.
func (e *Effective) and(below *Effective) *Effective {
	out := &Effective{levels: append(slices.Clip(e.levels), below.levels...), ceilings: e.ceilings}
	for i, low := range below.ceilings {
		if low.value >= 0 && (out.ceilings[i].value < 0 || low.value < out.ceilings[i].value) {
			out.ceilings[i] = limit{value: low.value, level: low.level + len(e.levels)}
		}
	}
	return out
}

// Hash changes whenever any of the overlays does.
func (e *Effective) Hash() string {
	digest := sha256.New()
	for _, level := range e.levels {
		_, _ = digest.Write([]byte(level.Scope + "\n")) // a digest takes everything
		if level.OverlayID != nil {
			_, _ = digest.Write([]byte(*level.OverlayID))
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// Choice is what is left of regions or SKUs, for callers that choose one: those in Only, or any when it is nil,
// without those in Not.
type Choice struct{ Only, Not []string }

// Regions returns the regions that are left.
func (e *Effective) Regions() Choice { return e.choice(regions) }

// SKUs returns the SKUs that are left.
func (e *Effective) SKUs() Choice { return e.choice(skus) }

func (e *Effective) choice(of list) Choice {
	out := Choice{Not: []string{}}
	for _, level := range e.levels {
		t := level.lists[of]
		for _, forbidden := range []map[string]bool{t.deny, t.final} {
			for word := range forbidden {
				out.Not = append(out.Not, word)
			}
		}
		switch {
		case t.allow == nil:
		case out.Only == nil:
			out.Only = []string{}
			for word := range t.allow {
				out.Only = append(out.Only, word)
			}
		default:
			out.Only = slices.DeleteFunc(out.Only, func(word string) bool { return !t.allow[word] })
		}
	}
	return out
}

// ref returns an overlay's name in a sentence.
func (c *compiled) ref() string {
	name := "the " + strings.ToLower(string(c.Scope)) + "'s policy"
	if c.OverlayID != nil {
		name += " (" + string(*c.OverlayID) + ")"
	}
	return name
}

// id returns the overlay's id, nil for a rule that it does not hold.
func (c *compiled) id(of list, effect Effect) *ids.ID {
	if effect == Allow && c.implied[of] {
		return nil
	}
	return c.OverlayID
}
