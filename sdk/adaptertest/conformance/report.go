package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is the result of one run.
type Report struct {
	// Digest is "sha256:" and the hex SHA-256 of Digested as canonical JSON: keys sorted, no white space.
	Digest string `json:"digest"`
	// Digested is the part that the digest covers.
	Digested Digested `json:"digested"`
	// Results are all clauses, in the order in which they ran.
	Results []Result `json:"results"`
	// Bounds are the bounds of every wait.
	Bounds Bounds `json:"bounds"`
	// Started and Seconds are the time and the length of the run.
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
}

// Digested is what another run of the same build repeats: no times, no ids.
type Digested struct {
	// Suite is the version of the suite, Contract the newest contract version it speaks.
	Suite    string `json:"suiteVersion"`
	Contract string `json:"contractVersion"`
	// Adapter is the adapter's name and build as it describes itself.
	Adapter AdapterID `json:"adapter"`
	// App is the app that was exercised.
	App string `json:"app"`
	// Clauses are the outcomes, sorted by id.
	Clauses []ClauseOutcome `json:"clauses"`
}

// AdapterID names a build of an adapter.
type AdapterID struct {
	// Name is its registered name, Build its build.
	Name  string `json:"name"`
	Build string `json:"build"`
}

// ClauseOutcome is a clause's id and how it ended.
type ClauseOutcome struct {
	// ID is the clause's, Outcome how it ended.
	ID      string  `json:"id"`
	Outcome Outcome `json:"outcome"`
}

// seal sorts the digested part and computes the digest.
func (r *Report) seal() error {
	r.Digested.Clauses = r.Digested.Clauses[:0]
	for _, result := range r.Results {
		r.Digested.Clauses = append(r.Digested.Clauses, ClauseOutcome{result.ID, result.Outcome})
	}
	slices.SortFunc(r.Digested.Clauses, func(a, b ClauseOutcome) int { return strings.Compare(a.ID, b.ID) })
	digest, err := r.Digested.Digest()
	r.Digest = digest
	return err
}

// Digest returns "sha256:" and the hex SHA-256 of the canonical JSON.
func (d Digested) Digest() (string, error) {
	raw, err := canonical(d)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// canonical returns a value as JSON with sorted keys and no white space.
func canonical(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	var loose any
	if err := json.Unmarshal(raw, &loose); err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return json.Marshal(loose) // maps are written with sorted keys
}

// Count returns how many clauses ended in this way.
func (r Report) Count(outcome Outcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == outcome {
			n++
		}
	}
	return n
}

// Failures returns the ids of the failed clauses, in the order in which they ran.
func (r Report) Failures() []string {
	failed := []string{}
	for _, result := range r.Results {
		if result.Outcome == Failed {
			failed = append(failed, result.ID)
		}
	}
	return failed
}

// OK reports whether no clause failed and at least one passed.
func (r Report) OK() bool { return r.Count(Failed) == 0 && r.Count(Passed) > 0 }
