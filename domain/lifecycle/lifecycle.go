// Package lifecycle holds every state machine of the platform as a table, and the closed lists of values that the
// database, the API and the adapter contract share. A value is stored and published in the same UPPER_SNAKE form; the
// adapter contract spells it in lower case (Wire, FromWire). GraphQL reads and writes the values as what they are,
// strings: the transport refuses any that the SDL does not list, and a test compares the SDL with Values.
//
// The tables are mirrored by a guard in SQL: Transitions gives the rows, and a test compares both. The golden
// printout in testdata/machines.golden shows all of them to a reader.
package lifecycle

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Move is one allowed step of a machine, with the reason it exists.
type Move[S ~string] struct {
	// From and To are the states before and after; they always differ.
	From, To S
	// Why says what makes the step.
	Why string
}

// table is one state machine: the name its SQL rows carry, where it begins, and its moves.
type table[S ~string] struct {
	name    string
	initial S
	moves   []Move[S]
}

// check refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (t table[S]) check(from, to S) error {
	for _, move := range t.moves {
		if move.From == from && move.To == to {
			return nil
		}
	}
	if from == to {
		return fault.New(fault.FailedPrecondition, "the %s is %s already", t.noun(), from)
	}
	return fault.New(fault.FailedPrecondition, "the %s is %s and cannot become %s", t.noun(), from, to)
}

// terminal reports whether no move leaves the state.
func (t table[S]) terminal(state S) bool {
	return !slices.ContainsFunc(t.moves, func(move Move[S]) bool { return move.From == state })
}

// noun is the machine's name as a message spells it.
func (t table[S]) noun() string { return strings.ReplaceAll(t.name, "_", " ") }

// rows is the table as the SQL guard holds it.
func (t table[S]) rows() []Transition {
	rows := make([]Transition, len(t.moves))
	for i, move := range t.moves {
		rows[i] = Transition{Machine: t.name, From: string(move.From), To: string(move.To), Why: move.Why}
	}
	return rows
}

// Transition is one row of the SQL guard lifecycle_transition(machine, from_state, to_state).
type Transition struct {
	// Machine is the machine's name: one of Machines.
	Machine string
	// From and To are stored states.
	From, To string
	// Why is for readers; the guard does not hold it.
	Why string
}

// Transitions is every allowed move of every machine, in the order of the tables.
func Transitions() []Transition {
	return slices.Concat(
		instanceMachine.rows(), allocationMachine.rows(), memberMachine.rows(),
		artifactMachine.rows(), manifestMachine.rows(),
		operationMachine.rows(), stepMachine.rows(), taskMachine.rows(), nodeMachine.rows(), shareMachine.rows(),
		gapMachine.rows(),
	)
}

// Machines lists the machines' names with the state each begins in, in the order of the tables.
func Machines() []Machine {
	return []Machine{
		{instanceMachine.name, string(instanceMachine.initial)},
		{allocationMachine.name, string(allocationMachine.initial)},
		{memberMachine.name, string(memberMachine.initial)},
		{artifactMachine.name, string(artifactMachine.initial)},
		{manifestMachine.name, string(manifestMachine.initial)},
		{operationMachine.name, string(operationMachine.initial)},
		{stepMachine.name, string(stepMachine.initial)},
		{taskMachine.name, string(taskMachine.initial)},
		{nodeMachine.name, string(nodeMachine.initial)},
		{shareMachine.name, string(shareMachine.initial)},
		{gapMachine.name, string(gapMachine.initial)},
	}
}

// Machine names a state machine.
type Machine struct {
	// Name is what the SQL guard's rows carry.
	Name string
	// Initial is the only state a new row may have.
	Initial string
}

// Wire is a value as the adapter contract spells it: "GPU_SLICE" is "gpu_slice".
func Wire[S ~string](value S) string { return strings.ToLower(string(value)) }

// word is any type with a closed list of values.
type word interface {
	~string
	Values() []string
}

// FromWire reads a value of the adapter contract, such as "active" for MemberActive. It fails with
// INVALID_ARGUMENT, listing the values there are; it never reads the stored upper-case form.
func FromWire[S word](text string) (S, error) {
	value := S(strings.ToUpper(text))
	if strings.ToLower(text) != text || !slices.Contains(value.Values(), string(value)) {
		return "", fault.New(fault.InvalidArgument, "%.40q is not one of %s", text,
			strings.ToLower(strings.Join(value.Values(), ", ")))
	}
	return value, nil
}

// Parse reads a stored or public value, such as "RUNNING". It fails with INVALID_ARGUMENT, listing the values.
func Parse[S word](text string) (S, error) {
	value := S(text)
	if !slices.Contains(value.Values(), text) {
		return "", fault.New(fault.InvalidArgument, "%.40q is not one of %s", text, strings.Join(value.Values(), ", "))
	}
	return value, nil
}

// names lists values as text.
func names[S ~string](values ...S) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = string(value)
	}
	return out
}
