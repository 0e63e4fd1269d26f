package evidence

import (
	"encoding/json"
	"slices"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Smoke is the kind that a runner signs a report of an artifact's smoke as.
const Smoke lifecycle.EvidenceKind = "SMOKE"

// Bounds of a report of a smoke.
const (
	// MaxSmoke bounds a report of a smoke, in bytes.
	MaxSmoke  = 64 << 10
	maxChecks = 50
	maxDetail = 2_000
)

// SmokeSchema names the form of a report of a smoke.
const SmokeSchema = "gpuaas.app/artifact-smoke/v1"

// smokeChecks are the checks that a smoke of each kind must have passed: a file is whole when its bytes are those of
// its digest, and an image works when it was started once and its command answered.
var smokeChecks = map[lifecycle.ArtifactKind][]string{
	lifecycle.ArtifactImage: {"fetched", "digest", "started", "answered"},
	lifecycle.ArtifactOCI:   {"fetched", "digest"},
	lifecycle.ArtifactBlob:  {"fetched", "digest"},
}

// SmokeChecks returns the checks that a smoke of the kind must have passed, in the order in which they run.
func SmokeChecks(kind lifecycle.ArtifactKind) []string { return slices.Clone(smokeChecks[kind]) }

// SmokeReport is a report of a smoke of an artifact's kind.
type SmokeReport struct {
	Schema string `json:"schema"`
	// Artifact is the digest that was run, Kind what sort of thing it is.
	Artifact string                 `json:"artifact"`
	Kind     lifecycle.ArtifactKind `json:"kind"`
	// Tool is what ran it, Platform what on, such as linux/amd64, and Command what was started, a word each.
	Tool     string       `json:"tool"`
	Platform string       `json:"platform,omitempty"`
	Command  []string     `json:"command,omitempty"`
	Checks   []SmokeCheck `json:"checks"`
}

// SmokeCheck is one check of a smoke.
type SmokeCheck struct {
	Name string `json:"name"`
	// Outcome is "passed" or "failed", Detail what was seen.
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// Missing returns the checks of the report's kind that have not passed, in their order. A check that is named twice has
// passed when both have.
func (r *SmokeReport) Missing() []string {
	missing := []string{}
	for _, name := range smokeChecks[r.Kind] {
		of := func(one SmokeCheck) bool { return one.Name == name }
		failed := func(one SmokeCheck) bool { return of(one) && one.Outcome != "passed" }
		if !slices.ContainsFunc(r.Checks, of) || slices.ContainsFunc(r.Checks, failed) {
			missing = append(missing, name)
		}
	}
	return missing
}

// ParseSmoke reads a report of at most MaxSmoke bytes. It fails with INVALID_ARGUMENT at "input.report" when it is not
// one.
func ParseSmoke(data []byte) (*SmokeReport, error) {
	if len(data) > MaxSmoke {
		return nil, bad("must be at most %d bytes", MaxSmoke)
	}
	out := &SmokeReport{}
	if err := json.Unmarshal(data, out); err != nil || out.Schema != SmokeSchema {
		return nil, bad("is not a report of schema %s", SmokeSchema).Because(err)
	}
	switch {
	case len(smokeChecks[out.Kind]) == 0:
		return nil, bad("is of kind %.40q, which artifacts do not have", out.Kind)
	case !digest.Valid(out.Artifact):
		return nil, bad("must name the artifact's digest: sha256: and 64 hexadecimal digits")
	case out.Tool == "" || len(out.Tool) > maxWord || len(out.Platform) > maxWord:
		return nil, bad("must name what ran it, in at most %d bytes", maxWord)
	case len(out.Checks) == 0 || len(out.Checks) > maxChecks || len(out.Command) > maxChecks:
		return nil, bad("must have 1 to %d checks, and a command of at most as many words", maxChecks)
	}
	return out, out.checks()
}

// checks refuses checks without a name or an outcome.
func (r *SmokeReport) checks() error {
	for _, one := range r.Checks {
		if one.Name == "" || len(one.Name) > maxWord || len(one.Detail) > maxDetail {
			return bad("must name each check in at most %d bytes, with a detail of at most %d", maxWord, maxDetail)
		}
		if one.Outcome != "passed" && one.Outcome != "failed" {
			return bad("has check %.40q with an outcome that is neither passed nor failed", one.Name)
		}
	}
	return nil
}

// Of returns why the report is not of this artifact; nil when it is. INVALID_ARGUMENT at "input.report".
func (r *SmokeReport) Of(kind lifecycle.ArtifactKind, digest string) error {
	switch {
	case r.Artifact != digest:
		return fault.New(fault.InvalidArgument, "the report is of %s, and the artifact is %s", r.Artifact, digest).
			At("input.report")
	case r.Kind != kind:
		return fault.New(fault.InvalidArgument, "the report is of kind %s, and the artifact is of kind %s",
			r.Kind, kind).
			At("input.report")
	}
	return nil
}
