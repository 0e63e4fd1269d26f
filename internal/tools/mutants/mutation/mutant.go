// Package mutation changes a Go package in one small place at a time and runs the package's tests on each change. A
// change that no test fails for, a survivor, shows what the tests do not check.
//
// All mutants of a sample are compiled at once, with go's -overlay, so the files of the checkout stay as they are. The
// environment variable MUTANT chooses the one that is in force. A first run without one records which mutants the
// tests reach; only those are run. Bounds: test files, generated files and files for other platforms are not mutated,
// a constant counts where its own package uses it, a number beside an error that is returned stays, and a mutant that
// does not compile is left out and counted.
package mutation

import (
	"fmt"
	"strings"
)

// Kind is what a mutant changes.
type Kind string

// The kinds of mutants.
const (
	Boundary Kind = "boundary" // < and <=, > and >= in each other's place
	Equality Kind = "equality" // == and != in each other's place
	Logical  Kind = "logical"  // && and || in each other's place
	Branch   Kind = "branch"   // the condition of an if or a case, negated
	Constant Kind = "constant" // a whole number, one up or one down
	Return   Kind = "return"   // a return that ends an if, left out
	Error    Kind = "error"    // an error that is returned, replaced by nil
)

// Mutant is one change of a package.
type Mutant struct {
	// Number is the value of MUTANT that puts it in force, from 1.
	Number int
	Kind   Kind
	// File is the file's base name, and Line the first line of the change.
	File string
	Line int
	// Func is the function or method around it; the name of a constant or variable outside of functions.
	Func string
	// From and To are the code before and after, on one line and cut when it is long; Again numbers those of a function
	// that read alike, from 0.
	From, To string
	Again    int

	edits []edit
}

// String returns the mutant as one line.
func (m *Mutant) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", m.File, m.Line, m.Name(), m.Kind)
}

// Name returns what the list of equivalents calls the mutant: it stays when lines move.
func (m *Mutant) Name() string {
	name := fmt.Sprintf("%s: %s → %s", m.Func, m.From, m.To)
	if m.Again > 0 {
		name += fmt.Sprintf(" #%d", m.Again+1)
	}
	return name
}

// edit replaces the bytes from at to end of a file. Edits of one place nest: see apply.
type edit struct {
	file    string
	at, end int
	text    string
	order   order
}

// order places edits that begin at the same byte.
type order struct {
	side   side
	extent int // bytes of the expression that the edit wraps
	inner  int // of edits that wrap the same expression, a larger one is further inside
}

type side int

const (
	closing side = iota // after an expression
	middle              // in place of an operator
	opening             // before an expression
)

// before reports whether a comes before b at the same byte: what ends there, the inner first, then what begins, the
// outer first.
func (a order) before(b order) bool {
	outer := a.extent > b.extent || a.extent == b.extent && a.inner < b.inner
	switch {
	case a.side != b.side:
		return a.side < b.side
	case a.side == closing:
		return !outer
	}
	return outer
}

// longest is how much of a piece of code is shown, in characters.
const longest = 100

// brief returns code on one line, cut when it is too long.
func brief(code string) string {
	short := []rune(strings.Join(strings.Fields(code), " "))
	if len(short) > longest {
		return string(short[:longest-1]) + "…"
	}
	return string(short)
}
