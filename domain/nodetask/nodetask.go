// Package nodetask is what a node task may ask for: the specification of each kind, read strictly and
// checked against every bound. It is pure.
//
// The node's agent checks a specification again, by the same rules; here it is refused before
// anything is written, with the path of the field at fault.
package nodetask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
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

// Spec is the checked details of one task: *Run, *WriteFile, *StartProcess, *StopProcess,
// *InspectProcess, *Probe, *FetchArtifact, *CloudInit, *Residue or *Teardown.
type Spec interface {
	// Kind is the kind of task that the details are for.
	Kind() lifecycle.NodeTaskKind
	check(*checker)
}

// kinds makes an empty specification of each kind and says which fields it knows.
var kinds = map[lifecycle.NodeTaskKind]struct {
	empty func() Spec
	known fields
}{
	lifecycle.TaskRun:            {func() Spec { return new(Run) }, runFields},
	lifecycle.TaskWriteFile:      {func() Spec { return new(WriteFile) }, writeFields},
	lifecycle.TaskStartProcess:   {func() Spec { return new(StartProcess) }, startFields},
	lifecycle.TaskStopProcess:    {func() Spec { return new(StopProcess) }, nameFields},
	lifecycle.TaskInspectProcess: {func() Spec { return new(InspectProcess) }, nameFields},
	lifecycle.TaskProbe:          {func() Spec { return new(Probe) }, probeFields},
	lifecycle.TaskFetchArtifact:  {func() Spec { return new(FetchArtifact) }, fetchFields},
	lifecycle.TaskCloudInit:      {func() Spec { return new(CloudInit) }, cloudFields},
	lifecycle.TaskResidue:        {func() Spec { return new(Residue) }, fields{}},
	lifecycle.TaskTeardown:       {func() Spec { return new(Teardown) }, fields{}},
}

// Parse reads the specification of a task of the kind. INVALID_ARGUMENT, with a reason and a path
// below "spec" for each field at fault.
func Parse(kind lifecycle.NodeTaskKind, raw json.RawMessage) (Spec, error) {
	known, ok := kinds[kind]
	if !ok {
		return nil, fault.New(fault.InvalidArgument, "%.40q is not a kind of node task", kind).At("kind")
	}
	c := &checker{}
	if len(raw) > MaxSpec {
		c.add(fault.TooLong, "spec", "at most %d bytes", MaxSpec)
		return nil, c.err()
	}
	if c.document(raw, known.known); c.failed() {
		return nil, c.err()
	}
	spec := known.empty()
	if err := json.Unmarshal(raw, spec); err != nil {
		c.mismatch(err)
		return nil, c.err()
	}
	if spec.check(c); c.failed() {
		return nil, c.err()
	}
	return spec, nil
}

// Encode writes a specification in its one canonical form: the same details give the same bytes.
func Encode(spec Spec) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(spec); err != nil {
		return nil, fmt.Errorf("encode a task's specification: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// fields are the members an object may have, each with those of the objects below it; nil for a
// value that is no object.
type fields map[string]fields

// checker gathers what is wrong with a specification.
type checker struct {
	reasons []fault.Reason
	refs    []SecretRef
}

// SecretRef is where a specification refers to a runtime secret.
type SecretRef struct {
	// Path is the field's path, below "spec".
	Path string
	// ID is the secret.
	ID ids.ID
}

// SecretRefs are the runtime secrets that a checked specification refers to, in its own order.
func SecretRefs(spec Spec) []SecretRef {
	c := &checker{}
	spec.check(c)
	return c.refs
}

func (c *checker) add(code fault.Code, path, format string, args ...any) {
	c.reasons = append(c.reasons, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: path})
}

func (c *checker) bad(path, format string, args ...any) {
	c.add(fault.BadValue, "spec."+path, format, args...)
}

func (c *checker) failed() bool { return len(c.reasons) > 0 }

func (c *checker) err() error {
	first := c.reasons[0]
	return fault.New(fault.InvalidArgument, "the task's specification is not valid: %s: %s", first.Path, first.Message).With(c.reasons...)
}

// document refuses what is no object, has unknown or repeated members, or holds text that cannot
// be stored.
func (c *checker) document(raw json.RawMessage, known fields) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		c.add(fault.BadValue, "spec", "must be an object")
		return
	}
	if c.object(decoder, "spec", known); c.failed() {
		return
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		c.add(fault.BadValue, "spec", "must be one JSON document")
	}
}

// object reads the members up to the closing brace.
func (c *checker) object(decoder *json.Decoder, path string, known fields) {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			c.add(fault.BadValue, path, "is not valid JSON")
			return
		}
		name, _ := token.(string) // a member's name always is one
		below, ok := known[name]
		at := path + "." + clip(name)
		switch {
		case !ok:
			c.add(fault.UnknownField, at, "there is no such field")
			return
		case seen[name]:
			c.add(fault.Duplicate, at, "the field stands twice")
			return
		}
		seen[name] = true
		if c.value(decoder, at, below); c.failed() {
			return
		}
	}
	_, _ = decoder.Token() // the brace
}

// value reads one value of any type.
func (c *checker) value(decoder *json.Decoder, path string, known fields) {
	token, err := decoder.Token()
	if err != nil {
		c.add(fault.BadValue, path, "is not valid JSON")
		return
	}
	switch token := token.(type) {
	case string:
		if strings.ContainsRune(token, 0) {
			c.add(fault.BadValue, path, "contains a NUL")
		}
	case json.Delim:
		if token == '{' {
			c.object(decoder, path, known)
			return
		}
		for i := 0; decoder.More() && !c.failed(); i++ {
			c.value(decoder, path+"."+strconv.Itoa(i), known)
		}
		if !c.failed() {
			_, _ = decoder.Token() // the bracket
		}
	}
}

// mismatch explains a value of the wrong type.
func (c *checker) mismatch(err error) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		path := "spec"
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		c.add(fault.BadValue, path, "must be %s, not %s", typeName(wrong), wrong.Value)
		return
	}
	c.add(fault.BadValue, "spec", "is not valid JSON")
}

func typeName(wrong *json.UnmarshalTypeError) string {
	switch wrong.Type.Kind().String() {
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "slice":
		return "a list"
	}
	return "an object"
}

func clip(name string) string {
	if len(name) <= 64 {
		return name
	}
	return strings.ToValidUTF8(name[:64], "") + "…"
}
