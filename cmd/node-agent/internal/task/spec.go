package task

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// maxContent bounds a file or standard input, in bytes. Sealed values and secrets have their size only when they are
// opened, so the platform cannot check it.
const maxContent = 1 << 20

// index finds the position of an element in a field's path.
var index = regexp.MustCompile(`\.([0-9]+)`)

// invalid returns the error for a field of the specification.
func invalid(field, format string, args ...any) error {
	return wire.Errorf(wire.CodeSpecInvalid, "%s: %s", field, fmt.Sprintf(format, args...))
}

// read returns the details of a task, checked by the rules that the platform checks them by.
func read(task Task) (nodetask.Spec, error) {
	switch {
	case !task.Kind.Valid():
		return nil, invalid("kind", "%q is not known to this agent", task.Kind)
	case len(bytes.TrimSpace(task.Spec)) == 0:
		return nil, invalid("spec", "is missing")
	}
	spec, err := nodetask.Parse(task.Kind, task.Spec)
	var broken *nodetask.Invalid
	if errors.As(err, &broken) {
		return nil, refusal(task.Kind, broken.Problems[0])
	}
	return spec, err
}

// refusal returns the outcome's error for a problem: its code, and the field as env[1].name.
func refusal(kind nodetask.Kind, problem nodetask.Problem) error {
	field := index.ReplaceAllString(strings.TrimPrefix(problem.Path, "spec."), "[$1]")
	if problem.Code == nodetask.UnknownField {
		return invalid("spec", "unknown field %q", field)
	}
	return wire.Errorf(codeOf(kind, field), "%s: %s", field, problem.Message)
}

// codeOf returns the code for a field: the one that the value would fail with when the task used it.
func codeOf(kind nodetask.Kind, field string) string {
	switch name := field[strings.LastIndexByte(field, '.')+1:]; {
	case name == "sealed" || name == "userDataSealed":
		return wire.CodeSealedInvalid
	case name == "user" || name == "owner":
		return wire.CodeUserUnknown
	case kind == nodetask.KindWriteFile && name == "path":
		return wire.CodePathInvalid
	}
	return wire.CodeSpecInvalid
}
