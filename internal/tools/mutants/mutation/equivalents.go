package mutation

import (
	"fmt"
	"path"
	"strings"
)

// Equivalents are the mutants that no test can kill, by package folder and the mutant's Name, with the reason.
type Equivalents map[string]string

// ParseEquivalents reads lines of the form
//
//	domain/ids Parse: len(text) > 0 → len(text) >= 0  # reason
//
// Empty lines and lines that begin with # are skipped. An entry without a reason is an error.
func ParseEquivalents(text string) (Equivalents, error) {
	found := Equivalents{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		mutant, reason, ok := strings.Cut(line, "  # ")
		folder, name, named := strings.Cut(mutant, " ")
		if !ok || !named || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("line %d: write: folder function: code → mutated code  # reason", i+1)
		}
		found[folder+" "+strings.TrimSpace(name)] = strings.TrimSpace(reason)
	}
	return found, nil
}

// has reports whether the list holds a mutant of the folder.
func (e Equivalents) has(folder string, m *Mutant) bool {
	_, ok := e[path.Clean(folder)+" "+m.Name()]
	return ok
}

// stale returns the entries of a folder that name none of its mutants.
func (e Equivalents) stale(folder string, all []*Mutant) (names []string) {
	known := map[string]bool{}
	for _, m := range all {
		known[path.Clean(folder)+" "+m.Name()] = true
	}
	for name := range e {
		if strings.HasPrefix(name, path.Clean(folder)+" ") && !known[name] {
			names = append(names, name)
		}
	}
	return names
}
