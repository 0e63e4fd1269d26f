// Package runbook holds what to do when something is wrong, as values: for each runbook the symptom, the checks in
// their order, the edges that each check can take, and what to do at each of them.
//
// The pages in docs/runbooks are printed from these values, and triage finds by the code of an error or a blocker which
// edge of which runbook applies. It is pure: no I/O and no clock.
package runbook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/runbook"
)

// The parts of a runbook are the types with which adapters write theirs.
type (
	// Runbook is what to do about one kind of incident.
	Runbook = runbook.Runbook
	// Check is one question of a runbook, with the edges that its answers take.
	Check = runbook.Check
	// Edge is one answer of a check: what is seen, what it means and what to do.
	Edge = runbook.Edge
)

// All returns every runbook, in the order of the list.
func All() []Runbook {
	return []Runbook{lifecycle, catalog, artifact, billing, operator, database, feeds, expiry, nodeLost, adapterAway}
}

// Branch is an edge with its place, or a check whose edge a person has to find.
type Branch struct {
	// Runbook, Check and Edge are the keys of the place, Edge empty for the whole check; Title is the runbook's.
	Runbook, Check, Edge, Title string
	// Section is the check's heading; empty for the one that the runbook begins with.
	Section string
	// Means and Do are the edge's, in Markdown; empty for a whole check.
	Means, Do string
}

// Ref returns the branch in one word, as runbook/check/edge or runbook/check.
func (b Branch) Ref() string {
	if b.Edge == "" {
		return b.Runbook + "/" + b.Check
	}
	return b.Runbook + "/" + b.Check + "/" + b.Edge
}

// Find returns the branch that a code takes in a step of an operation, or for a request, and false where no runbook has
// one. An edge for that request alone goes before an edge for any request, an edge of that step before an edge of any
// step, and all before a whole check; of those that are alike the first in the order of All is returned.
func Find(code, step, asked string) (Branch, bool) {
	for _, wanted := range slices.Compact([]string{asked, ""}) {
		for _, at := range slices.Compact([]string{step, ""}) {
			if found, ok := first(func(e Edge) bool {
				return e.Step == at && slices.Contains(e.On, code) && only(e, wanted)
			}); ok {
				return found, true
			}
		}
	}
	for _, book := range All() {
		if i := slices.IndexFunc(book.Checks, func(c Check) bool { return slices.Contains(c.On, code) }); i >= 0 {
			return branch(book, book.Checks[i], Edge{}), true
		}
	}
	return Branch{}, false
}

// first returns the first edge, in the order of All, that is one of those wanted.
func first(wanted func(Edge) bool) (Branch, bool) {
	for _, book := range All() {
		for _, check := range book.Checks {
			if i := slices.IndexFunc(check.Edges, wanted); i >= 0 {
				return branch(book, check, check.Edges[i]), true
			}
		}
	}
	return Branch{}, false
}

// only reports whether an edge is for the request alone; for an empty request, whether it is for any.
func only(edge Edge, asked string) bool {
	i := slices.IndexFunc(edge.When, func(c runbook.Condition) bool {
		return c.Fact == "asked" && c.Op == runbook.OpIs
	})
	if i < 0 {
		return asked == ""
	}
	return slices.Contains(edge.When[i].Values, asked)
}

func branch(book Runbook, check Check, edge Edge) Branch {
	return Branch{Runbook: book.Name, Check: check.Key, Edge: edge.Key, Title: book.Title, Section: check.Title,
		Means: edge.Means, Do: edge.Do}
}

// List prints the table of all runbooks, for the page that leads to them.
func List() string {
	lines := []string{"| runbook | incident | when |", "|---|---|---|"}
	for _, book := range All() {
		lines = append(lines, runbook.Row(fmt.Sprintf("[%s](%s.md)", book.Title, book.Name), book.Incident,
			book.Symptom))
	}
	return strings.Join(lines, "\n")
}

// WithList returns a page with the list of all runbooks and that of all facts between their marks, and false where a
// mark is missing.
func WithList(page string) (string, bool) {
	page, listed := between(page, "runbooks", List())
	page, known := between(page, "facts", runbook.FactList())
	return page, listed && known
}

// between puts a text between the two marks of a name in a page.
func between(page, name, text string) (string, bool) {
	begin, end := "<!-- "+name+" -->\n", "\n<!-- end of "+name+" -->"
	before, rest, begins := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return page, false
	}
	return before + begin + text + end + after, true
}
