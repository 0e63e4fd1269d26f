package archtest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
)

// Rule is one promise of the house.
type Rule struct {
	// Name says the promise.
	Name string
	// find is every breach; excused are the reviewed ones, by the finding's key, each with its reason.
	find    func(*Tree) []Finding
	excused map[string]string
}

// Check is every breach that is not excused, and every excuse that excuses nothing any more.
func (r Rule) Check(tree *Tree) (open []Finding) {
	used := map[string]bool{}
	for _, finding := range r.find(tree) {
		if excuse := r.excuse(finding); excuse != "" {
			used[excuse] = true
			continue
		}
		open = append(open, finding)
	}
	for key, reason := range r.excused {
		if !used[key] || reason == "" {
			open = append(open, Finding{"internal/archtest/exceptions.go", 1, key,
				fmt.Sprintf("the exception %q excuses nothing any more: delete it", key)})
		}
	}
	slices.SortFunc(open, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return open
}

// excuse is the name of the exception that covers a finding; empty when none does.
func (r Rule) excuse(finding Finding) string {
	names := []string{finding.Key, finding.Path}
	for dir := path.Dir(finding.Path); dir != "."; dir = path.Dir(dir) {
		names = append(names, dir+"/")
	}
	for _, name := range names {
		if r.excused[name] != "" {
			return name
		}
	}
	return ""
}

// Rules is every promise, in the order of the house's plan.
func Rules() []Rule {
	return []Rule{
		{"every package has a floor", Homeless, nil},
		{"imports point down", Climbing, climbing},
		{"reviewed edges are needed and have no circle", UnusedEdges, nil},
		{"the sdk imports nothing of the platform", SDKAlone, nil},
		{"break-glass is used by its own verbs alone", Glass, nil},
		{"adapters, agent and command line see the sdk only", Outsiders, nil},
		{"no test helper is in a program", TestHelpers, testHelpers},
		{"the domain is pure", Impure, impurities},
		{"verbs go by the database's clock", OwnClock, ownClock},
		{"no floating point is near money", Floating, nil},
		{"graph reads and writes through verbs alone", Reaching, reaching},
		{"no app's name is in the platform", AppNames, nil},
		{"generated code lies in folders named generated", Misfiled, nil},
		{"packages and exported names are documented", Undocumented, undocumentedNames},
		{"files stay short", LongFiles, longFiles},
		{"packages stay small", LargePackages, largePackages},
		{"functions stay short", LongFunctions, longFunctions},
		{"an if tests what its initialiser assigns", StrayInitialisers, nil},
		{"tests wait for states", Sleeping, sleeping},
		{"nothing happens by itself", Hidden, hidden},
		{"nothing is left unfinished", Unfinished, nil},
		{"tests run in parallel", Serial, serial},
		{"every permission key is checked", Unasked, unasked},
		{"every type of event is written", Untold, untold},
		{"every state and move is written", Unmade, unmade},
		{"states in SQL are the lifecycle's", MisspeltStates, misspeltStates},
		{"every fault code is answered with", Unraised, unraised},
		{"lines are narrow", WideLines, wideLines},
		{"comments use the words of docs/style.md", Wordings, wordings},
		{"texts use the words of docs/style.md", Texts, texts},
	}
}
