// Package smoke runs a smoke of an artifact's kind, as a runner does before it signs what it saw: of every artifact,
// all bytes are fetched and checked against their digests; an image is started once besides, by a container engine of
// this machine, and its command must answer.
package smoke

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuaas/app-platform/sdk/publish"
)

// Schema names the form of a report.
const Schema = "gpuaas.app/artifact-smoke/v1"

// SignedAs is the kind that a runner signs a report as, with signing.SignReport.
const SignedAs = "SMOKE"

// Kinds of artifacts, as the platform names them.
const (
	Image    = "IMAGE"
	Artifact = "OCI_ARTIFACT"
	Blob     = "BLOB"
)

// Subject is the artifact that is run.
type Subject struct {
	// Ref is its reference in a registry, Digest the digest it is pinned to, and Kind one of the kinds above.
	Ref, Digest, Kind string
	// Bytes is its size as the platform knows it; 0 to leave it unchecked.
	Bytes int64
}

// Options say how a smoke is run.
type Options struct {
	// Registry is how the registry is reached.
	Registry publish.Registry
	// Engine is the container engine, a word each, such as podman; Flags are those of its run command.
	Engine, Flags []string
	// Command is started in place of the image's own, as arguments of its entrypoint.
	Command []string
	// Up is how long a command that does not end must stay up to have answered; Timeout bounds the whole smoke.
	Up, Timeout time.Duration
	// Tool is what runs it, for the report.
	Tool string
}

// Check is one check of a smoke.
type Check struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// Report is what was run, and what was seen.
type Report struct {
	Schema   string   `json:"schema"`
	Artifact string   `json:"artifact"`
	Kind     string   `json:"kind"`
	Tool     string   `json:"tool"`
	Platform string   `json:"platform,omitempty"`
	Command  []string `json:"command,omitempty"`
	Checks   []Check  `json:"checks"`
}

// Passed reports whether every check that was run passed. Checks after the first failure are not run.
func (r *Report) Passed() bool {
	for _, one := range r.Checks {
		if one.Outcome != "passed" {
			return false
		}
	}
	return len(r.Checks) > 0
}

// Encode returns the bytes that are signed and brought.
func (r *Report) Encode() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// note adds the outcome of a check, and reports whether it passed.
func (r *Report) note(name string, err error, detail string) bool {
	one := Check{Name: name, Outcome: "passed", Detail: detail}
	if err != nil {
		one.Outcome, one.Detail = "failed", clip(err.Error())
	}
	r.Checks = append(r.Checks, one)
	return err == nil
}

// maxDetail bounds what a check says, in bytes.
const maxDetail = 1_500

func clip(text string) string {
	if len(text) > maxDetail {
		return text[:maxDetail] + "…"
	}
	return text
}

// Run runs the smoke of the subject's kind. What fails is in the report; the error is for what cannot be run at all.
func Run(ctx context.Context, subject Subject, options Options) (*Report, error) {
	if options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.Timeout)
		defer cancel()
	}
	report := &Report{Schema: Schema, Artifact: subject.Digest, Kind: subject.Kind, Tool: options.Tool}
	switch subject.Kind {
	case Blob:
		report.file(ctx, subject)
	case Artifact, Image:
		image := report.pulled(ctx, subject, options.Registry)
		if subject.Kind == Image && report.Passed() {
			report.Platform = "linux/" + runtime.GOARCH
			report.start(ctx, image, options)
		}
	default:
		return nil, fmt.Errorf("there is no smoke of kind %q", subject.Kind)
	}
	return report, nil
}

// pulled fetches all of an artifact in a registry, and returns its image for this machine; nil when it has none.
func (r *Report) pulled(ctx context.Context, subject Subject, registry publish.Registry) v1.Image {
	found, err := registry.Fetch(ctx, subject.Ref, subject.Digest)
	if !r.note("fetched", err, "") {
		return nil
	}
	r.Checks[0].Detail = fmt.Sprintf("%d parts, %d bytes", found.Parts, found.Bytes)
	if subject.Bytes > 0 && found.Bytes != subject.Bytes {
		err = fmt.Errorf("it has %d bytes, but %d are expected", found.Bytes, subject.Bytes)
	}
	if !r.note("digest", err, subject.Digest) {
		return nil
	}
	return found.Image
}
