package main

import (
	"errors"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// notes are what the cells of one page have defined. A cell is constant expressions of Go: they end, and reach nothing.
type notes struct {
	named map[string]types.TypeAndValue
}

// maxLines bounds a cell.
const maxLines = 100

// definition is a line that gives its value a name.
var definition = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*:?=\s*([^=].*)$`)

// newNotes knows the environment's variables as texts.
func newNotes(environment []string) *notes {
	n := &notes{named: make(map[string]types.TypeAndValue)}
	for _, each := range environment {
		name, value, _ := strings.Cut(each, "=")
		n.named[name] = types.TypeAndValue{Type: types.Typ[types.UntypedString], Value: constant.MakeString(value)}
	}
	return n
}

// run evaluates a cell line by line, and returns the value of the last.
func (n *notes) run(code string) (string, error) {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	if len(lines) > maxLines {
		return "", fmt.Errorf("a cell has at most %d lines", maxLines)
	}
	var last types.TypeAndValue
	for number, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") {
			continue
		}
		name, expression := "", line
		if found := definition.FindStringSubmatch(line); found != nil {
			name, expression = found[1], found[2]
		}
		value, err := n.value(expression)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", number+1, err)
		}
		last = value
		if name != "" {
			n.named[name] = value
		}
	}
	if last.Value == nil {
		return "", nil
	}
	if last.Value.Kind() == constant.String {
		return constant.StringVal(last.Value), nil
	}
	return last.Value.String(), nil
}

// value evaluates one expression.
func (n *notes) value(expression string) (types.TypeAndValue, error) {
	in := types.NewPackage("notebook", "notebook")
	for name, known := range n.named {
		in.Scope().Insert(types.NewConst(token.NoPos, in, name, known.Type, known.Value))
	}
	found, err := types.Eval(token.NewFileSet(), in, token.NoPos, expression)
	if wrong, ok := errors.AsType[types.Error](err); ok {
		return found, errors.New(wrong.Msg)
	}
	switch {
	case err != nil:
		return found, err
	case found.Value == nil:
		return found, errors.New("this notebook supports only numbers, texts, true and false, and expressions of them")
	}
	return found, nil
}
