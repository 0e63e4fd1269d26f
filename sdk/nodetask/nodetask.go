// Package nodetask holds the details of node tasks: the kinds, the fields of each kind, and every rule that the fields
// keep. It is the one written source. The platform checks a task by it before anything is written, the node's agent
// reads and checks it again by the same code, the SDK and the stand-in platforms take their kinds and fields from it,
// and the tables in docs/node-tasks.md are written from its comments.
//
// It imports nothing of the platform and does no I/O, so that every program can hold it.
package nodetask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Kind is what a node task does in the sandbox of one member.
type Kind string

// The kinds of node task.
const (
	KindRun            Kind = "RUN"
	KindWriteFile      Kind = "WRITE_FILE"
	KindStartProcess   Kind = "START_PROCESS"
	KindStopProcess    Kind = "STOP_PROCESS"
	KindInspectProcess Kind = "INSPECT_PROCESS"
	KindProbe          Kind = "PROBE"
	KindFetchArtifact  Kind = "FETCH_ARTIFACT"
	KindCloudInit      Kind = "CLOUD_INIT"
	KindResidue        Kind = "RESIDUE"
	KindTeardown       Kind = "TEARDOWN"
)

// Spec is the details of one task, as a pointer: *Run, *WriteFile, *StartProcess, *StopProcess, *InspectProcess,
// *Probe, *FetchArtifact, *CloudInit, *ResidueQuery or *Teardown.
type Spec interface {
	// TaskKind returns the kind of task that the details are for.
	TaskKind() Kind
	check(*checker)
}

// kinds holds each kind once: how to make empty details of it, and which fields they have.
var kinds = []struct {
	kind  Kind
	empty func() Spec
	known fields
}{
	{KindRun, func() Spec { return new(Run) }, fieldsOf[Run]()},
	{KindWriteFile, func() Spec { return new(WriteFile) }, fieldsOf[WriteFile]()},
	{KindStartProcess, func() Spec { return new(StartProcess) }, fieldsOf[StartProcess]()},
	{KindStopProcess, func() Spec { return new(StopProcess) }, fieldsOf[StopProcess]()},
	{KindInspectProcess, func() Spec { return new(InspectProcess) }, fieldsOf[InspectProcess]()},
	{KindProbe, func() Spec { return new(Probe) }, fieldsOf[Probe]()},
	{KindFetchArtifact, func() Spec { return new(FetchArtifact) }, fieldsOf[FetchArtifact]()},
	{KindCloudInit, func() Spec { return new(CloudInit) }, fieldsOf[CloudInit]()},
	{KindResidue, func() Spec { return new(ResidueQuery) }, fieldsOf[ResidueQuery]()},
	{KindTeardown, func() Spec { return new(Teardown) }, fieldsOf[Teardown]()},
}

// Kinds returns every kind.
func Kinds() []Kind {
	list := make([]Kind, len(kinds))
	for i, one := range kinds {
		list[i] = one.kind
	}
	return list
}

// Valid reports whether k is a kind of node task.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// New returns empty details of the kind; nil when there is no such kind.
func New(kind Kind) Spec {
	for _, one := range kinds {
		if one.kind == kind {
			return one.empty()
		}
	}
	return nil
}

// Parse reads the details of a task of the kind, strictly: an object without unknown or repeated fields, text that can
// be stored, and every rule of the kind kept. The error is an [*Invalid] with each problem. How large a document may be
// is the reader's own bound.
func Parse(kind Kind, raw json.RawMessage) (Spec, error) {
	spec, c := New(kind), &checker{}
	if spec == nil {
		c.add(BadValue, "kind", "%.40q is not a kind of node task", kind)
		return nil, c.err()
	}
	c.document(raw, knownOf(kind))
	if c.failed() {
		return nil, c.err()
	}
	if err := json.Unmarshal(raw, spec); err != nil {
		c.mismatch(err)
		return nil, c.err()
	}
	spec.check(c)
	if c.failed() {
		return nil, c.err()
	}
	return spec, nil
}

// Encode returns the one canonical form of details: the same details have the same bytes.
func Encode(spec Spec) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(spec); err != nil {
		return nil, fmt.Errorf("encode a task's specification: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Same reports whether two details have the same canonical form, so that the later of the two changes nothing.
func Same(a, b Spec) bool {
	first, errA := Encode(a)
	second, errB := Encode(b)
	return errA == nil && errB == nil && bytes.Equal(first, second)
}

// SecretRef is where a specification refers to a runtime secret.
type SecretRef struct {
	// Path is the field's path, such as "spec.env.1.secretRef".
	Path string
	// ID is the secret's id.
	ID string
}

// SecretRefs returns the runtime secrets that parsed details refer to, in the order of their fields.
func SecretRefs(spec Spec) []SecretRef {
	c := &checker{}
	spec.check(c)
	return c.refs
}

func knownOf(kind Kind) fields {
	for _, one := range kinds {
		if one.kind == kind {
			return one.known
		}
	}
	return nil
}
