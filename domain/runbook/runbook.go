// Package runbook holds what to do when something is wrong, as values: for each runbook the symptom, the checks in the
// order in which they are made, the edges that each check can take, and what to do at each of them.
//
// The pages in docs/runbooks are printed from these values, and triage finds by the code of an error or a blocker which
// edge of which runbook applies. It is pure: no I/O and no clock.
package runbook

import (
	"fmt"
	"slices"
	"strings"
)

// Runbook is what to do about one kind of incident.
type Runbook struct {
	// Name is the page's file name, without its ending.
	Name string
	// Title is the page's.
	Title string
	// Incident is the name of this sort of incident in the platform's own documents.
	Incident string
	// Symptom says when to read it, for the list of all.
	Symptom string
	// Checks are made in this order.
	Checks []Check
}

// Check is one question of a runbook, with the edges that its answers take.
type Check struct {
	// Key names the check in its runbook.
	Key string
	// Title is the heading; empty for what every walk of the runbook begins with.
	Title string
	// On are the codes of errors and blockers that lead here, where a person has to see which edge is taken.
	On []string
	// Ask is how the check is made, in Markdown: commands, and what they show.
	Ask string
	// Columns are the headings of the edges' table: two where no edge has Means, otherwise three; empty without edges.
	Columns []string
	// Edges are the answers.
	Edges []Edge
	// Then is what follows, in Markdown, whichever edge was taken.
	Then string
}

// Edge is one answer of a check: what is seen, what it means and what to do.
type Edge struct {
	// Key names the edge in its check.
	Key string
	// On are the codes of errors and blockers that take this edge.
	On []string
	// Step is the only step of an operation in which they do; empty for any.
	Step string
	// Seen, Means and Do are the edge's row, in Markdown. Means may be empty.
	Seen, Means, Do string
}

// All returns every runbook, in the order of the list.
func All() []Runbook {
	return []Runbook{lifecycle, catalog, artifact, billing, operator}
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

// Ref is the branch in one word, as runbook/check/edge or runbook/check.
func (b Branch) Ref() string {
	if b.Edge == "" {
		return b.Runbook + "/" + b.Check
	}
	return b.Runbook + "/" + b.Check + "/" + b.Edge
}

// Find returns the branch that a code takes in a step of an operation, and false where no runbook has one. An edge of
// that step goes before an edge of any step, and both before a whole check; of those that are alike the first in the
// order of All is returned.
func Find(code, step string) (Branch, bool) {
	for _, wanted := range slices.Compact([]string{step, ""}) {
		for _, book := range All() {
			for _, check := range book.Checks {
				if i := slices.IndexFunc(check.Edges, func(e Edge) bool {
					return e.Step == wanted && slices.Contains(e.On, code)
				}); i >= 0 {
					return branch(book, check, check.Edges[i]), true
				}
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

func branch(book Runbook, check Check, edge Edge) Branch {
	means := edge.Means
	if means == "" {
		means = edge.Seen
	}
	return Branch{Runbook: book.Name, Check: check.Key, Edge: edge.Key, Title: book.Title, Section: check.Title,
		Means: means, Do: edge.Do}
}

// Page prints the runbook as Markdown.
func (r Runbook) Page() string {
	parts := []string{"# " + r.Title}
	for _, check := range r.Checks {
		if check.Title != "" {
			parts = append(parts, "## "+check.Title)
		}
		for _, text := range []string{check.Ask, check.table(), check.Then} {
			if text != "" {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// table prints the edges.
func (c Check) table() string {
	if len(c.Columns) == 0 {
		return ""
	}
	lines := []string{row(c.Columns), "|" + strings.Repeat("---|", len(c.Columns))}
	for _, edge := range c.Edges {
		cells := []string{edge.Seen, edge.Means, edge.Do}
		if len(c.Columns) == 2 {
			cells = []string{edge.Seen, edge.Do}
		}
		lines = append(lines, row(cells))
	}
	return strings.Join(lines, "\n")
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// List prints the table of all runbooks, for the page that leads to them.
func List() string {
	lines := []string{"| runbook | incident | when |", "|---|---|---|"}
	for _, book := range All() {
		lines = append(lines, row([]string{fmt.Sprintf("[%s](%s.md)", book.Title, book.Name), book.Incident, book.Symptom}))
	}
	return strings.Join(lines, "\n")
}

// Where the list stands in the page that leads to all.
const (
	listBegins = "<!-- runbooks -->\n"
	listEnds   = "\n<!-- end of runbooks -->"
)

// WithList returns a page with the list of all runbooks between its two marks, and false where it has none.
func WithList(page string) (string, bool) {
	before, rest, begins := strings.Cut(page, listBegins)
	_, after, ends := strings.Cut(rest, listEnds)
	if !begins || !ends {
		return page, false
	}
	return before + listBegins + List() + listEnds + after, true
}
