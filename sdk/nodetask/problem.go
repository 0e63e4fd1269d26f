package nodetask

import "fmt"

// Code says what sort of problem a field has, for programs.
type Code string

// The codes, which are those of the platform's refusals.
const (
	BadValue     Code = "BAD_VALUE"
	UnknownField Code = "UNKNOWN_FIELD"
	Duplicate    Code = "DUPLICATE"
)

// Problem is one thing that is wrong with the details of a task.
type Problem struct {
	// Code is the sort of problem.
	Code Code
	// Path names the field, below "spec", such as "spec.env.1.name"; "kind" for an unknown kind.
	Path string
	// Message says what is wrong, without the path.
	Message string
}

// Invalid is the error for details that break a rule.
type Invalid struct {
	// Problems holds at least one; those of one pass are complete.
	Problems []Problem
}

// Error returns the first problem with its path.
func (e *Invalid) Error() string {
	first := e.Problems[0]
	return fmt.Sprintf("the task's specification is not valid: %s: %s", first.Path, first.Message)
}
