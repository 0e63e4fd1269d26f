// Package nodetask checks the requests for node tasks: the details of each kind, read strictly and checked against
// every bound. It is pure.
//
// The kinds, their fields and their rules are in sdk/nodetask, which the node's agent reads too. This package adds the
// platform's own bounds and turns each problem into a reason of a refusal, with the path of the field, so that a
// request is refused before anything is written.
package nodetask

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// Bounds of a task.
const (
	// MaxSpec bounds a specification as JSON, in bytes.
	MaxSpec = 512 << 10
	// MaxResult bounds a result as JSON, in bytes.
	MaxResult = 256 << 10
	// MaxMessage bounds a report's message, in characters.
	MaxMessage = 2_000
	// MaxOutput bounds what is kept of each output stream, in bytes.
	MaxOutput = 64 << 10
	// MaxPiece bounds one piece of output, in bytes.
	MaxPiece = 16 << 10
	// MinTimeout and MaxTimeout bound a task's time, in seconds.
	MinTimeout = 1
	MaxTimeout = 3_600
)

// Spec is the checked details of one task.
type Spec = nodetask.Spec

// FetchArtifact is the details of a FETCH_ARTIFACT task.
type FetchArtifact = nodetask.FetchArtifact

// Parse reads the specification of a task of the kind. INVALID_ARGUMENT, with a reason and a path below "spec" for each
// field at fault.
func Parse(kind lifecycle.NodeTaskKind, raw json.RawMessage) (Spec, error) {
	of := nodetask.Kind(kind)
	switch {
	case !of.Valid():
		return nil, fault.New(fault.InvalidArgument, "%.40q is not a kind of node task", kind).At("kind")
	case len(raw) > MaxSpec:
		message := fmt.Sprintf("at most %d bytes", MaxSpec)
		return nil, refusal(fault.Reason{Code: fault.TooLong, Path: "spec", Message: message})
	}
	spec, err := nodetask.Parse(of, raw)
	var invalid *nodetask.Invalid
	if !errors.As(err, &invalid) {
		return spec, err
	}
	reasons := make([]fault.Reason, len(invalid.Problems))
	for i, problem := range invalid.Problems {
		reasons[i] = fault.Reason{Code: fault.Code(problem.Code), Path: problem.Path, Message: problem.Message}
	}
	return nil, refusal(reasons...)
}

func refusal(reasons ...fault.Reason) error {
	first := reasons[0]
	return fault.New(fault.InvalidArgument, "the task's specification is not valid: %s: %s", first.Path, first.Message).
		With(reasons...)
}

// KindOf returns the kind of task that details are for.
func KindOf(spec Spec) lifecycle.NodeTaskKind { return lifecycle.NodeTaskKind(spec.TaskKind()) }

// Encode returns the one canonical form of a specification: the same details have the same bytes.
func Encode(spec Spec) (json.RawMessage, error) { return nodetask.Encode(spec) }

// SecretRef is where a specification refers to a runtime secret.
type SecretRef struct {
	// Path is the field's path, below "spec".
	Path string
	// ID is the secret.
	ID ids.ID
}

// SecretRefs returns the runtime secrets that a checked specification refers to, in its own order.
func SecretRefs(spec Spec) []SecretRef {
	var refs []SecretRef
	for _, ref := range nodetask.SecretRefs(spec) {
		refs = append(refs, SecretRef{Path: ref.Path, ID: ids.ID(ref.ID)})
	}
	return refs
}
