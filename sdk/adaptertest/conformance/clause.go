package conformance

import (
	"slices"
	"strings"
)

// Clause is one rule of the contract that the suite checks.
type Clause struct {
	// ID is stable: group, dot, name.
	ID string
	// Rule is the rule in one line.
	Rule string
	// Section is where the contract says it.
	Section string
	// Fix is what to do when it fails.
	Fix string
	// Needs are clauses without which this one says nothing; they come before it.
	Needs []string

	run func(*check)
}

// Clauses returns every clause in the order in which they run.
func Clauses() []Clause {
	return slices.Concat(
		describeClauses(), dispatchClauses(), attemptClauses(), statusClauses(), []Clause{unbornClause()}, feedClauses(), cancelClauses(),
		deadlineClauses(), bodyClauses(), signatureClauses(), observeClauses(), actionClauses(), usageClauses(), tenancyClauses(),
		planClauses(), memberClauses(), leaveClauses(), instanceClauses(), decommissionClauses(), crashClauses(), answerClauses(),
	)
}

// created is what most clauses need: an instance that can be created at all.
const created = "dispatch.completes"

// selected says which clauses a run is to try: those asked for, and what they need.
func selected(only []string) map[string]bool {
	chosen := map[string]bool{}
	all := Clauses()
	for i := len(all) - 1; i >= 0; i-- {
		clause := all[i]
		if !chosen[clause.ID] && !matches(clause.ID, only) {
			continue
		}
		chosen[clause.ID] = true
		for _, need := range clause.Needs {
			chosen[need] = true
		}
	}
	return chosen
}

func matches(id string, only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(prefix string) bool {
		return id == prefix || strings.HasPrefix(id, strings.TrimSuffix(prefix, ".")+".")
	})
}

func knownClauses(only []string) error {
	for _, prefix := range only {
		if !slices.ContainsFunc(Clauses(), func(c Clause) bool { return matches(c.ID, []string{prefix}) }) {
			return optionf("only: there is no clause %q", prefix)
		}
	}
	return nil
}

// halt ends a clause from anywhere below it; only the suite's own loop recovers it.
type halt struct {
	outcome Outcome
	reason  string
}
