// Package release orders releases of RKE2 and says which step from one to another Kubernetes allows.
package release

import (
	"fmt"
	"regexp"
	"strconv"
)

// Release is a release of RKE2, such as v1.36.3+rke2r1.
type Release struct {
	// Major, Minor and Patch are those of its Kubernetes, and Build is RKE2's own count behind them.
	Major, Minor, Patch, Build int
}

// form is how RKE2 writes a release; release candidates are not taken.
var form = regexp.MustCompile(`v([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})\+rke2r([0-9]{1,4})\b`)

// Find returns the first release that a text names, such as what the program prints of itself; ok is false without one.
func Find(text string) (found Release, ok bool) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Release{}, false
	}
	for i, into := range []*int{&found.Major, &found.Minor, &found.Patch, &found.Build} {
		*into, _ = strconv.Atoi(parts[i+1]) // the form holds four digits at most
	}
	return found, true
}

// String returns the release as RKE2 writes it.
func (r Release) String() string {
	return fmt.Sprintf("v%d.%d.%d+rke2r%d", r.Major, r.Minor, r.Patch, r.Build)
}

// Less reports whether r came before another release.
func (r Release) Less(other Release) bool {
	mine, others := [...]int{r.Major, r.Minor, r.Patch, r.Build}, [...]int{other.Major, other.Minor, other.Patch,
		other.Build}
	for i := range mine {
		if mine[i] != others[i] {
			return mine[i] < others[i]
		}
	}
	return false
}

// Step is what a change from one release to another is.
type Step int

// The steps.
const (
	// Stays means that the release does not change.
	Stays Step = iota
	// Forward is an upgrade that Kubernetes allows: the same minor version, or the next one.
	Forward
	// Skips is an upgrade that leaves a minor version out.
	Skips
	// Back is a downgrade, which neither Kubernetes nor etcd's data bears.
	Back
)

// StepTo returns what the change from r to another release is.
func (r Release) StepTo(to Release) Step {
	switch {
	case r == to:
		return Stays
	case to.Less(r):
		return Back
	case to.Major != r.Major || to.Minor > r.Minor+1:
		return Skips
	}
	return Forward
}

// Next names the minor version that comes next, for the remedy of a skipped one.
func (r Release) Next() string { return fmt.Sprintf("v%d.%d", r.Major, r.Minor+1) }
