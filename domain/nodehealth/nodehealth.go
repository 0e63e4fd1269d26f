// Package nodehealth states what the checks of a node's agent may find, what follows from it for members, and how the
// platform keeps it: since when a condition is as it is is the platform's own account, by the database's clock.
package nodehealth

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// State is what a check found.
type State string

// The states, from the best to the worst. Unknown is a check that did not end, or had no result.
const (
	Good    State = "GOOD"
	Warning State = "WARNING"
	Unknown State = "UNKNOWN"
	Bad     State = "BAD"
)

// states are all of them, from the best to the worst.
var states = []State{Good, Warning, Unknown, Bad}

// Values lists every State as it is stored and published, from the best to the worst.
func (State) Values() []string { return names(states) }

// Effect is what follows from a condition for members.
type Effect string

// The effects.
const (
	// NoEffect leaves the node as it is.
	NoEffect Effect = "NONE"
	// NoNewMembers keeps new members away, and is a blocker of those that are there.
	NoNewMembers Effect = "NO_NEW_MEMBERS"
)

// Values lists every Effect as it is published.
func (Effect) Values() []string { return names([]Effect{NoEffect, NoNewMembers}) }

func names[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = string(value)
	}
	return out
}

// Bounds of what an agent may report.
const (
	MaxConditions = 32
	MaxMessage    = 500 // bytes
)

// name is a check's name: one of the agent's own, or that of an operator's check behind a slash.
var name = regexp.MustCompile(`^([a-z][a-z0-9-]{0,30}|check/[A-Za-z0-9][A-Za-z0-9._-]{0,62})$`)

// Condition is what the newest run of one check found.
type Condition struct {
	// Name is disk, memory, clock, runtime or gpu, or check/FILE for an operator's own check.
	Name    string `json:"name"`
	State   State  `json:"state"`
	Message string `json:"message"`
	// Since is when the platform first received this state; an agent leaves it zero.
	Since time.Time `json:"since"`
}

// Effect returns what follows from the condition: what is not known to be good enough takes no new members.
func (c Condition) Effect() Effect {
	if c.State == Bad || c.State == Unknown {
		return NoNewMembers
	}
	return NoEffect
}

// Check returns what is wrong with a report, as the index of a condition, its field and why; ok when nothing is.
func Check(reported []Condition) (index int, field, why string, ok bool) {
	seen := make(map[string]bool, len(reported))
	for i, one := range reported {
		switch {
		case !name.MatchString(one.Name):
			return i, "name", "must be a lower-case letter and letters, digits or hyphens, or check/FILE", false
		case seen[one.Name]:
			return i, "name", fmt.Sprintf("%s is reported twice", one.Name), false
		case !slices.Contains(states, one.State):
			return i, "state", "must be GOOD, WARNING, UNKNOWN or BAD", false
		case len(one.Message) > MaxMessage:
			return i, "message", fmt.Sprintf("must be at most %d bytes", MaxMessage), false
		}
		seen[one.Name] = true
	}
	return 0, "", "", true
}

// Merge returns what the platform keeps of a report: the state that a condition already had keeps its time.
func Merge(before, reported []Condition, now time.Time) []Condition {
	merged := make([]Condition, 0, len(reported))
	for _, one := range reported {
		one.Since = now
		for _, old := range before {
			if old.Name == one.Name && old.State == one.State && !old.Since.IsZero() {
				one.Since = old.Since
			}
		}
		merged = append(merged, one)
	}
	slices.SortFunc(merged, func(a, b Condition) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

// Barring returns the conditions that keep new members away, the worst and oldest first.
func Barring(conditions []Condition) []Condition {
	var found []Condition
	for _, one := range conditions {
		if one.Effect() == NoNewMembers {
			found = append(found, one)
		}
	}
	slices.SortStableFunc(found, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(slices.Index(states, b.State), slices.Index(states, a.State)),
			a.Since.Compare(b.Since))
	})
	return found
}

// Drain is the wish that no work is left on a node. It is carried out by ordinary drains of its members.
type Drain struct {
	// Since is when it was requested, By who did, and Reason why.
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	// DeadlineSeconds is how long the drain of each member may take. Force loses its work at once.
	DeadlineSeconds int  `json:"deadlineSeconds"`
	Force           bool `json:"force"`
	// Ending says that the node takes members again: those that this drain drained are uncordoned, then it is over.
	Ending bool `json:"ending"`
	// Drained are the members that it has drained or begun to, and Refused why one could not be, by member.
	Drained []string           `json:"drained,omitempty"`
	Refused map[string]Refusal `json:"refused,omitempty"`
	// Forced are the members whose drains it has requested by force.
	Forced []string `json:"forced,omitempty"`
}

// Refusal is why a member could not be drained when that was last tried.
type Refusal struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}
