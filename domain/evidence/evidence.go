// Package evidence reads the reports that publishers bring for a manifest: those of the adapter conformance suite, of
// which the tests between tenants are a part. What a report says is checked against the clauses that every adapter must
// have passed; a report that leaves out one of them does not pass.
package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Bounds of a report.
const (
	// MaxReport bounds a report, in bytes.
	MaxReport = 512 << 10
	// maxClauses bounds the clauses that a report speaks of, maxWord the bytes of a name in it.
	maxClauses = 1000
	maxWord    = 200
)

// Summary is what a report comes to.
type Summary struct {
	// Adapter and Build are what the adapter calls itself and its build; App is the app that was exercised.
	Adapter string `json:"adapter"`
	Build   string `json:"build"`
	App     string `json:"app"`
	// Suite is the version of the suite.
	Suite string `json:"suite"`
	// Passed, Failed, Skipped and NotRun count clauses.
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	NotRun  int `json:"notRun"`
	// Missing are the required clauses that have not passed, sorted.
	Missing []string `json:"missing"`
}

// OK says whether nothing failed and every required clause has passed.
func (s Summary) OK() bool { return s.Failed == 0 && len(s.Missing) == 0 && s.Passed > 0 }

// required are the clauses that every adapter must have passed, whatever its app. Others may be skipped, as an app that
// has no actions skips those on actions; none may fail.
var required = map[lifecycle.EvidenceKind][]string{
	lifecycle.EvidenceConformance: {
		"crash.once", "decommission.clean", "describe.schemas", "describe.valid", "describe.versions",
		"dispatch.completes",
		"dispatch.repeat",
		"secret.answers", "secret.log", "signature.audience", "signature.body", "signature.expired", "signature.issuer",
		"signature.key",
		"signature.method", "signature.missing", "signature.none", "signature.target",
	},
	lifecycle.EvidenceTenancy: {
		"tenancy.answers", "tenancy.audience", "tenancy.instance", "tenancy.names", "tenancy.operation",
		"tenancy.token",
	},
}

// Required lists the clauses that a report of the kind must have passed, sorted.
func Required(kind lifecycle.EvidenceKind) []string { return slices.Clone(required[kind]) }

// report is the part of a report that is read.
type report struct {
	Digest   string          `json:"digest"`
	Digested json.RawMessage `json:"digested"`
}

type digested struct {
	Suite   string `json:"suiteVersion"`
	Adapter struct {
		Name  string `json:"name"`
		Build string `json:"build"`
	} `json:"adapter"`
	App     string `json:"app"`
	Clauses []struct {
		ID      string `json:"id"`
		Outcome string `json:"outcome"`
	} `json:"clauses"`
}

var clauseID = regexp.MustCompile(`^[a-z]+\.[a-z_]{1,60}$`)

// Parse reads a report of at most MaxReport bytes. It fails with INVALID_ARGUMENT at "input.report" for anything else,
// and with DIGEST_MISMATCH there when the report's own digest is not that of its content.
func Parse(kind lifecycle.EvidenceKind, data []byte) (Summary, error) {
	if len(data) > MaxReport {
		return Summary{}, bad("must be at most %d bytes", MaxReport)
	}
	var outer report
	if err := json.Unmarshal(data, &outer); err != nil || len(outer.Digested) == 0 {
		return Summary{}, bad("is not a report of the conformance suite").Because(err)
	}
	var said digested
	if err := json.Unmarshal(outer.Digested, &said); err != nil {
		return Summary{}, bad("is not a report of the conformance suite").Because(err)
	}
	own, err := digestOf(outer.Digested)
	if err != nil {
		return Summary{}, bad("is not a report of the conformance suite").Because(err)
	}
	if own != outer.Digest {
		return Summary{}, fault.New(fault.DigestMismatch,
			"the report's digest does not match its content").At("input.report").Retry(false)
	}
	return said.sum(kind)
}

// sum counts the clauses and looks for the required ones.
func (d *digested) sum(kind lifecycle.EvidenceKind) (Summary, error) {
	out := Summary{Adapter: d.Adapter.Name, Build: d.Adapter.Build, App: d.App, Suite: d.Suite, Missing: []string{}}
	for _, word := range []string{out.Adapter, out.Build, out.App, out.Suite} {
		if word == "" || len(word) > maxWord {
			return Summary{},
				bad("must name the adapter, its build, the app and the suite's version, each in at most %d bytes",
					maxWord)
		}
	}
	if len(d.Clauses) > maxClauses {
		return Summary{}, bad("must have at most %d clauses", maxClauses)
	}
	outcomes := make(map[string]string, len(d.Clauses))
	for _, clause := range d.Clauses {
		if _, twice := outcomes[clause.ID]; twice || !clauseID.MatchString(clause.ID) {
			return Summary{}, bad("names the clause %.80q twice, or it is not the name of a clause", clause.ID)
		}
		outcomes[clause.ID] = clause.Outcome
		switch clause.Outcome {
		case "passed":
			out.Passed++
		case "failed":
			out.Failed++
		case "skipped":
			out.Skipped++
		case "not_run":
			out.NotRun++
		default:
			return Summary{}, bad("has clause %s whose outcome is not passed, failed, skipped or not_run", clause.ID)
		}
	}
	for _, id := range required[kind] {
		if outcomes[id] != "passed" {
			out.Missing = append(out.Missing, id)
		}
	}
	return out, nil
}

// digestOf is the suite's digest of what it says: over its JSON with members sorted by name and no white space.
func digestOf(data json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var loose any
	if err := decoder.Decode(&loose); err != nil {
		return "", fmt.Errorf("read the report: %w", err)
	}
	canonical, err := json.Marshal(loose)
	if err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return digest.Of(canonical), nil
}

func bad(format string, args ...any) *fault.Fault {
	return fault.New(fault.InvalidArgument, "the report "+format, args...).At("input.report")
}
