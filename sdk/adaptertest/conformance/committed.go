package conformance

import (
	"bytes"
	"encoding/json"
	"os"
)

// Of returns the report of some groups or clauses alone, with those they need, and a digest of its
// own: the same report as of a run with these in Only.
func (r Report) Of(only ...string) (Report, error) {
	chosen := selected(only)
	part := r
	part.Results, part.Digested.Clauses = nil, nil
	for _, result := range r.Results {
		if chosen[result.ID] {
			part.Results = append(part.Results, result)
		}
	}
	return part, part.seal()
}

// Write writes the report to a file, in the form of a manifest's evidence.
func (r Report) Write(path string) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) // #nosec G306 -- a report is for everybody
}

// Committed compares a report with the one that is kept in a file beside the code: for the same
// build both must have the same digest. With update it writes the file again.
func Committed(t TB, r Report, path string, update bool) {
	t.Helper()
	if update {
		if err := r.Write(path); err != nil {
			t.Fatalf("conformance: %v", err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("conformance: %v: run this test with -update", err)
	}
	var kept Report
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatalf("conformance: %s: %v", path, err)
	}
	if digest, err := kept.Digested.Digest(); err != nil || digest != kept.Digest || digest != r.Digest {
		t.Errorf("%s has %s of build %s, this run %s of build %s: run this test with -update and read the difference",
			path, kept.Digest, kept.Digested.Adapter.Build, r.Digest, r.Digested.Adapter.Build)
	}
}

// CommittedBoth is Committed for the two reports that an adapter's program has of its own build: that of the whole run,
// in conformance.json beside the code, and its part between tenants, in tenancy.json. Every clause must have been run.
func CommittedBoth(t TB, r Report, update bool) {
	t.Helper()
	if left := r.Count(NotRun); left > 0 {
		t.Fatalf("conformance: %d clauses were not run: let the suite start the program, so that all run", left)
	}
	Committed(t, r, "conformance.json", update)
	tenancy, err := r.Of("tenancy")
	if err != nil {
		t.Fatalf("conformance: %v", err)
	}
	Committed(t, tenancy, "tenancy.json", update)
}
