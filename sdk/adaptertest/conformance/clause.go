package conformance

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/calls"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/instances"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/operations"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Clause is one rule of the contract that the suite checks.
type Clause struct {
	// ID is stable: group, dot, name.
	ID string
	// Rule is the rule in one line.
	Rule string
	// Section is the section of the contract that states the rule.
	Section string
	// Fix is what to do when the clause fails.
	Fix string
	// Needs are the clauses without which this one proves nothing. They come before it.
	Needs []string
}

// Clauses returns every clause in the order in which they run.
func Clauses() []Clause {
	var list []Clause
	for _, one := range all() {
		list = append(list, Clause{ID: one.ID, Rule: one.Rule, Section: one.Section, Fix: one.Fix, Needs: one.Needs})
	}
	return list
}

// all returns every clause with its check, in the order in which they run.
func all() []trial.Clause {
	return slices.Concat(
		calls.Describe(),
		[]trial.Clause{calls.Manifest()},
		operations.Dispatch(),
		operations.Attempt(),
		calls.Status(),
		[]trial.Clause{instances.Unborn()},
		operations.Feed(),
		operations.Cancel(),
		operations.Deadline(),
		calls.Body(),
		calls.Signature(),
		calls.Observe(),
		calls.Action(),
		calls.Usage(),
		instances.Tenancy(),
		calls.Plan(),
		instances.Member(),
		instances.Work(),
		instances.Leave(),
		instances.Each(),
		instances.Versions(),
		instances.Decommission(),
		operations.Crash(),
		calls.Answers(),
	)
}

// selected returns the clauses that a run tries: the requested ones and those that they need.
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
