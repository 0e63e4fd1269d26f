package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// span is the versions from one to another. The ends are of semver.Compare's form, "v1.2.3"; empty for none.
type span struct {
	from, to     string
	after, until bool // from itself is outside, to itself is inside
}

// comparator is one part of a constraint: an operator and a version, of which the last numbers may be left out.
var comparator = regexp.MustCompile(
	`^(>=|<=|>|<|=|)(0|[1-9][0-9]{0,8})(?:\.(0|[1-9][0-9]{0,8}))?(?:\.(0|[1-9][0-9]{0,8}))?(-[0-9A-Za-z.-]+)?$`)

// parseSpan reads a constraint: comparators with spaces between, all of which must hold, or * for every
// version. A comparator that names no pre-release compares the release alone, so that 2.0.0-rc.1 is not
// below 2; only = with all three numbers means exactly that version.
func parseSpan(text string) (span, bool) {
	parts := strings.Fields(text)
	if len(parts) == 0 || len(parts) > 8 {
		return span{}, false
	}
	if len(parts) == 1 && parts[0] == "*" {
		return span{}, true
	}
	out := span{}
	for _, part := range parts {
		one, ok := parseComparator(part)
		if !ok {
			return span{}, false
		}
		out = out.and(one)
	}
	return out, true
}

func parseComparator(text string) (span, bool) {
	found := comparator.FindStringSubmatch(text)
	if found == nil {
		return span{}, false
	}
	operator, numbers, pre := found[1], found[2:5], found[5]
	given := slices.IndexFunc(numbers, func(n string) bool { return n == "" })
	if given < 0 {
		given = len(numbers)
	}
	if pre != "" {
		exact := "v" + strings.Join(numbers[:given], ".") + pre
		return exactly(operator, exact), given == 3 && semver.IsValid(exact)
	}
	whole := "v" + strings.Join(numbers, ".")
	if given == 3 && (operator == "=" || operator == "") {
		return exactly(operator, whole), true
	}
	first, next := edges(numbers, given)
	switch operator {
	case ">=":
		return span{from: first}, true
	case ">":
		return span{from: next}, true
	case "<":
		return span{to: first}, true
	case "<=":
		return span{to: next}, true
	}
	return span{from: first, to: next}, true
}

// exactly is a comparator with a version to the letter.
func exactly(operator, version string) span {
	switch operator {
	case ">=":
		return span{from: version}
	case ">":
		return span{from: version, after: true}
	case "<":
		return span{to: version}
	case "<=":
		return span{to: version, until: true}
	}
	return span{from: version, to: version, until: true}
}

// edges are the first pre-release of the first version that begins with the given numbers, and that of the
// first one beyond them.
func edges(numbers []string, given int) (first, next string) {
	var from, beyond [3]int
	for i := range given {
		from[i], _ = strconv.Atoi(numbers[i]) // #nosec G602 -- there are at most three numbers, of nine digits each
	}
	beyond = from
	beyond[given-1]++ // #nosec G602 -- one to three numbers are given
	return lowest(from), lowest(beyond)
}

func lowest(v [3]int) string {
	return "v" + strconv.Itoa(v[0]) + "." + strconv.Itoa(v[1]) + "." + strconv.Itoa(v[2]) + "-0"
}

// and is what both hold.
func (s span) and(other span) span {
	if order := fromOrder(s, other); order < 0 {
		s.from, s.after = other.from, other.after
	}
	if order := toOrder(s, other); order > 0 {
		s.to, s.until = other.to, other.until
	}
	return s
}

// fromOrder orders where two begin.
func fromOrder(a, b span) int {
	switch {
	case a.from == "" || b.from == "":
		return compareBool(a.from != "", b.from != "")
	case semver.Compare(a.from, b.from) != 0:
		return semver.Compare(a.from, b.from)
	}
	return compareBool(a.after, b.after)
}

// toOrder orders where two end.
func toOrder(a, b span) int {
	switch {
	case a.to == "" || b.to == "":
		return compareBool(a.to == "", b.to == "")
	case semver.Compare(a.to, b.to) != 0:
		return semver.Compare(a.to, b.to)
	}
	return compareBool(a.until, b.until)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// has says whether a version without its leading v is inside.
func (s span) has(version string) bool {
	v := "v" + version
	if !semver.IsValid(v) {
		return false
	}
	if s.from != "" {
		if order := semver.Compare(v, s.from); order < 0 || (order == 0 && s.after) {
			return false
		}
	}
	if s.to != "" {
		if order := semver.Compare(v, s.to); order > 0 || (order == 0 && !s.until) {
			return false
		}
	}
	return true
}

// empty says whether nothing can be inside.
func (s span) empty() bool {
	if s.from == "" || s.to == "" {
		return s.to == "v0.0.0-0" && !s.until
	}
	order := semver.Compare(s.from, s.to)
	return order > 0 || (order == 0 && (s.after || !s.until))
}

// covered says whether all of it lies in the others together.
func (s span) covered(by []span) bool {
	by = slices.Clone(by)
	slices.SortFunc(by, fromOrder)
	rest := s
	for _, one := range by {
		if rest.empty() || one.empty() {
			continue
		}
		if fromOrder(one, rest) > 0 {
			return false
		}
		if one.to == "" {
			return true
		}
		// what is left begins where this one ends, unless it began beyond that already
		if left := (span{from: one.to, after: one.until, to: rest.to, until: rest.until}); fromOrder(left, rest) > 0 {
			rest = left
		}
	}
	return rest.empty()
}

// Admits says whether any of the constraints lets a version in. A constraint that cannot be read lets in none.
func Admits(constraints []string, version string) bool {
	return slices.ContainsFunc(constraints, func(text string) bool {
		one, ok := parseSpan(text)
		return ok && one.has(version)
	})
}

// Constraint says whether a text is a constraint on versions, such as ">=1.2 <2".
func Constraint(text string) bool {
	_, ok := parseSpan(text)
	return ok && len(text) <= maxWord
}
