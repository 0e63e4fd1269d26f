package blocker

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Scope is what a rule is about.
type Scope string

// The scopes.
const (
	OfOperations Scope = "operation"
	OfInstances  Scope = "instance"
	OfBoth       Scope = "operation, instance"
)

// Keys that depend on the operation or the instance; any other is the key itself, and one that begins
// with the family's mark is the instance's family with that ending.
const (
	keyForce  = "force"  // the operation's own key, while force may be chosen and is not
	keyCancel = "cancel" // operation.cancel, of kinds that can be canceled
	family    = "<family>."
)

// byFinding is the owner of a rule whose findings name the owner.
const byFinding = ""

// Rule is one row of the table: a reason why something does not go on.
type Rule struct {
	// Code is the blocker's code.
	Code string
	// Scope is whose blockers it appears among.
	Scope Scope
	// Owner is who can clear it; empty when the finding names the owner.
	Owner string
	// Key is the permission key that clears it, as the constants say; empty for none.
	Key string
	// When is the condition under which it is found, for the catalogue.
	When string
	// Clears is what ends it, for the catalogue.
	Clears string
	// Since is from when it counts, for the catalogue.
	Since string
	// Message is for a person; words in braces are the finding's.
	Message string
	// UnderWay says that nothing is wrong: the blocker only reports what is being done.
	UnderWay bool

	find func(f *Facts) []finding
}

// finding is one thing that a rule has found.
type finding struct {
	subject string
	since   time.Time
	next    *time.Time
	owner   string // where the rule has none
	key     string // where it is not the rule's
	words   []string
}

// Rules is the table, in the order of mending.
func Rules() []Rule { return slices.Clone(rules) }

// Of lists what the rules find in the facts, the thing to mend first at its head, at most MaxListed.
func Of(f *Facts) []*Blocker { return merge(f) }

// OfInstance lists what keeps an instance from where it should be: its own findings, and those of its
// open operations, in the order of the table. Two with one code and subject are listed once.
func OfInstance(instance *Facts, operations []*Facts) []*Blocker {
	return merge(append(slices.Clone(operations), instance)...)
}

func merge(all ...*Facts) []*Blocker {
	list := []*Blocker{}
	type told struct{ code, subject string }
	known := make(map[told]bool)
	add := func(b *Blocker) {
		if one := (told{b.Code, b.Subject}); !known[one] && len(list) < MaxListed {
			known[one] = true
			list = append(list, b)
		}
	}
	for _, rule := range rules {
		for _, f := range all {
			if !rule.speaksOf(f) {
				continue
			}
			for _, found := range rule.find(f) {
				for _, root := range f.roots(rule) {
					add(root)
				}
				add(rule.blocker(f, found))
			}
		}
	}
	return list
}

// roots returns what is wrong with the operation that another one waits for: it is listed before the wait.
func (f *Facts) roots(rule Rule) (list []*Blocker) {
	if f.Behind == nil || rule.Code != codeBehind {
		return nil
	}
	for _, one := range f.Behind.Blockers {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Code == one.Code && r.UnderWay }) {
			list = append(list, one)
		}
	}
	return list
}

func (r Rule) speaksOf(f *Facts) bool {
	if f.Operation != nil {
		return r.Scope != OfInstances
	}
	return r.Scope != OfOperations
}

func (r Rule) blocker(f *Facts, found finding) *Blocker {
	owner := r.Owner
	if owner == "" {
		owner = found.owner
	}
	pairs := make([]string, len(found.words))
	for i, word := range found.words {
		pairs[i] = word
		if i%2 == 0 {
			pairs[i] = "{" + word + "}"
		}
	}
	return &Blocker{
		Code: r.Code, Message: strings.NewReplacer(pairs...).Replace(r.Message), Owner: owner, Subject: found.subject,
		Since: found.since, NextRetryAt: found.next, PermissionKey: f.key(cmp.Or(found.key, r.Key)),
	}
}

// key returns the permission key that a rule's key means for these facts.
func (f *Facts) key(wanted string) string {
	suffix, ofFamily := strings.CutPrefix(wanted, family)
	switch {
	case ofFamily && f.Family == "":
		return ""
	case ofFamily:
		return f.Family + "." + suffix
	case wanted == keyForce:
		return f.forceKey()
	case wanted == keyCancel && (f.Operation == nil || !f.Operation.Kind.Effects().Cancelable):
		return ""
	case wanted == keyCancel:
		return "operation.cancel"
	}
	return wanted
}

// forceKey returns the key with which force can be chosen: of the open operation's kind, or for an instance
// that of replacing a member.
func (f *Facts) forceKey() string {
	switch {
	case f.Family == "":
		return ""
	case f.Operation == nil:
		return f.Family + ".member.replace"
	case !f.Operation.Kind.Effects().Forcible || f.forced():
		return ""
	}
	return f.Family + "." + f.Operation.Kind.Effects().Permission
}
