// Package runbook has the types of runbooks, for the platform's own and for those of adapters: a runbook is a
// value, with the symptom, the checks in the order in which they are carried out, the edges that each check can take,
// and what to do at each of them.
//
// Page prints a runbook for people, and Walk walks it by facts: which edge is taken follows from what a program can
// read by the public API, the metrics and the health of an installation. The package is pure: it reads nothing itself.
package runbook

import (
	"strings"
)

// Runbook is what to do about one kind of incident.
type Runbook struct {
	// Name is the page's file name, without its ending.
	Name string
	// Title is the title of the page.
	Title string
	// Incident is the name of this sort of incident.
	Incident string
	// Symptom says when to read it, for the list of all.
	Symptom string
	// Checks are the checks, in the order in which they are carried out.
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
	// Ask describes how to carry out the check, in Markdown: commands, and what they show.
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
	// Step is the only step of an operation in which those codes take it; empty for any.
	Step string
	// When are the facts that take the edge, besides a code of On where there are any; all of them hold.
	When []Condition
	// Person says why only a person can see that the edge is taken; empty where a program can.
	Person string
	// Seen, Means and Do are the edge's row, in Markdown. Means may be empty.
	Seen, Means, Do string
	// Act is Do for a program.
	Act Action
}

// Action is what clears the cause: calls of the platform's API, something outside of the platform, or waiting. At least
// one of them is there.
type Action struct {
	// Calls are mutations of the platform's API; where there are several, any of them or all, as Do says.
	Calls []string
	// Outside is what is done outside of the platform, in a few words, such as "start the agent".
	Outside string
	// Wait is what clears by itself; empty for an edge at which a person has to act.
	Wait string
}

// Calls returns an action by mutations of the platform's API.
func Calls(mutations ...string) Action { return Action{Calls: mutations} }

// Outside returns an action outside of the platform, with the mutations that follow it.
func Outside(what string, mutations ...string) Action { return Action{Outside: what, Calls: mutations} }

// Wait is an edge that clears by itself.
func Wait(what string) Action { return Action{Wait: what} }

// String is the action in one line of Markdown.
func (a Action) String() string {
	var parts []string
	if a.Outside != "" {
		parts = append(parts, a.Outside)
	}
	if len(a.Calls) > 0 {
		parts = append(parts, "`"+strings.Join(a.Calls, "`, `")+"`")
	}
	if a.Wait != "" {
		parts = append(parts, "wait: "+a.Wait)
	}
	return strings.Join(parts, "; ")
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
	if walk := r.walk(); walk != "" {
		parts = append(parts, "## How a program walks it", walk)
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// walk prints which facts take each edge, and what a program does there; empty without edges.
func (r Runbook) walk() string {
	var lines []string
	for _, check := range r.Checks {
		for _, edge := range check.Edges {
			taken := edge.taken()
			if edge.Person != "" {
				taken = "a person sees it: " + edge.Person
			}
			if taken == "" {
				continue
			}
			lines = append(lines, Row("`"+check.Key+"/"+edge.Key+"`", taken, edge.Act.String()))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "Edges in order: the first that applies is taken. Facts are those of the [list](README.md#facts).\n" +
		"\n" +
		"| edge | taken when | act |\n|---|---|---|\n" + strings.Join(lines, "\n")
}

// table prints the edges.
func (c Check) table() string {
	if len(c.Columns) == 0 {
		return ""
	}
	lines := []string{Row(c.Columns...), "|" + strings.Repeat("---|", len(c.Columns))}
	for _, edge := range c.Edges {
		cells := []string{edge.Seen, edge.Means, edge.Do}
		if len(c.Columns) == 2 {
			cells = []string{edge.Seen, edge.Do}
		}
		lines = append(lines, Row(cells...))
	}
	return strings.Join(lines, "\n")
}

// Row is a row of a table.
func Row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
