package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// Terms are what a version's steps need beside evidence: confidence that was gained, and time for others to move.
type Terms struct {
	// MinLaunches are the launches of a canary, by others than its publisher, that must have succeeded before it
	// becomes ACTIVE.
	MinLaunches int `json:"minLaunches"`
	// MinMinutes is how long a version must have been a canary.
	MinMinutes int `json:"minMinutes"`
	// GraceHours is how long a version must have been DEPRECATED before it is RETIRED.
	GraceHours int `json:"graceHours"`
	// SecondApprover demands that the step to ACTIVE is not taken by a person who took one of those before it.
	SecondApprover bool `json:"secondApprover"`
	// SmokedArtifacts demands, before the step to CANARY, a signed report of a smoke of its kind for each artifact.
	SmokedArtifacts bool `json:"smokedArtifacts"`
	// RequireOnboarding demands all conditions of onboarding before the step to ACTIVE.
	RequireOnboarding bool `json:"requireOnboarding"`
}

// DefaultTerms hold for apps without terms of their own.
func DefaultTerms() Terms {
	return Terms{MinLaunches: 5, MinMinutes: 60, GraceHours: 24, SmokedArtifacts: true}
}

// Bounds of terms.
const (
	MaxLaunches = 1_000
	MaxMinutes  = 30 * 24 * 60
	MaxHours    = 365 * 24
)

// TermsOf reads stored terms; none are the defaults.
func TermsOf(stored json.RawMessage) (Terms, error) {
	terms := DefaultTerms()
	if len(stored) == 0 {
		return terms, nil
	}
	err := json.Unmarshal(stored, &terms)
	return terms, err
}

// Whose says whose launches count for a canary.
type Whose string

// Whose launches count: a publisher's own launches prove little, so others' count where others may launch the app.
const (
	// OfAll are those of an app of the platform, OfTenants those in projects of other tenants than the publisher's.
	OfAll     Whose = "ALL"
	OfTenants Whose = "TENANTS"
	// OfProjects are those in other projects of the publisher's tenant, the only one that may launch the app; Own are
	// those of an app that the publishing project alone may launch.
	OfProjects Whose = "PROJECTS"
	Own        Whose = "OWN"
)

// words say whose launches count.
var words = map[Whose]string{
	OfAll: "its launches", OfTenants: "its launches by tenants other than its publisher's",
	OfProjects: "its launches in projects other than the one that publishes it", Own: "its launches",
}

// Canary is what is known of a canary that is to become ACTIVE.
type Canary struct {
	// Launches are those that succeeded and count, Whose says which do.
	Launches int
	Whose    Whose
	Age      time.Duration
	// Same says that the steps before were taken by the one who takes this.
	Same bool
}

// LacksActive returns what keeps a canary from ACTIVE, in words; empty when nothing does.
func (t Terms) LacksActive(canary Canary) (lacks []string) {
	if canary.Launches < t.MinLaunches {
		lacks = append(lacks, fmt.Sprintf("%d of %s have succeeded, and %d are needed", canary.Launches,
			cmp.Or(words[canary.Whose], words[OfAll]), t.MinLaunches))
	}
	if least := time.Duration(t.MinMinutes) * time.Minute; canary.Age < least {
		lacks = append(lacks, fmt.Sprintf("it has been the canary for %s, and %s are needed",
			canary.Age.Round(time.Second), least))
	}
	if t.SecondApprover && canary.Same {
		lacks = append(lacks, "someone other than the one who staged it or started the canary must take this step")
	}
	return lacks
}

// LacksRetired returns what keeps a version that was deprecated a while ago from RETIRED; empty when nothing does.
func (t Terms) LacksRetired(age time.Duration) (lacks []string) {
	if least := time.Duration(t.GraceHours) * time.Hour; age < least {
		return []string{fmt.Sprintf("it has been DEPRECATED for %s, and %s are needed", age.Round(time.Second), least)}
	}
	return nil
}
