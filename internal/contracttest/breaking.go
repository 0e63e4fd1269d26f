package contracttest

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Breaking lists what a client written against before could trip over in after: something it may name does not exist
// any more, something it may read can now be null or is of another type, something it must now send that it does not
// know of, or a default that has changed under it. Additions are not listed.
func Breaking(before, after *ast.Schema) []string {
	var breaks breakage
	for _, old := range Types(before) {
		now := after.Types[old.Name]
		switch {
		case now == nil:
			breaks.add("type %s was removed", old.Name)
		case now.Kind != old.Kind:
			breaks.add("type %s was %s and is %s", old.Name, old.Kind, now.Kind)
		default:
			breaks.compare(old, now)
		}
	}
	for name := range before.Directives {
		if after.Directives[name] == nil {
			breaks.add("directive @%s was removed", name)
		}
	}
	slices.Sort(breaks)
	return breaks
}

type breakage []string

func (b *breakage) add(format string, args ...any) { *b = append(*b, fmt.Sprintf(format, args...)) }

// compare compares two definitions of one name and kind.
func (b *breakage) compare(old, now *ast.Definition) {
	for _, value := range old.EnumValues {
		if now.EnumValues.ForName(value.Name) == nil {
			b.add("enum value %s.%s was removed", old.Name, value.Name)
		}
	}
	for _, name := range old.Interfaces {
		if !slices.Contains(now.Interfaces, name) {
			b.add("type %s no longer implements %s", old.Name, name)
		}
	}
	for _, name := range old.Types {
		if !slices.Contains(now.Types, name) {
			b.add("union %s no longer holds %s", old.Name, name)
		}
	}
	if old.Kind == ast.InputObject {
		b.inputs(old, now)
		return
	}
	b.outputs(old, now)
}

// outputs compares the fields of objects and interfaces.
func (b *breakage) outputs(old, now *ast.Definition) {
	for _, field := range old.Fields {
		name := old.Name + "." + field.Name
		next := now.Fields.ForName(field.Name)
		if next == nil {
			b.add("field %s was removed", name)
			continue
		}
		if !outputFits(field.Type, next.Type) {
			b.add("field %s was %s and is %s", name, field.Type, next.Type)
		}
		b.arguments(name, field.Arguments, next.Arguments)
	}
}

// arguments compares what a field takes.
func (b *breakage) arguments(field string, old, now ast.ArgumentDefinitionList) {
	for _, argument := range old {
		name := field + "(" + argument.Name + ")"
		next := now.ForName(argument.Name)
		if next == nil {
			b.add("argument %s was removed", name)
			continue
		}
		b.taken("argument "+name, argument.Type, next.Type, argument.DefaultValue, next.DefaultValue)
	}
	for _, argument := range now {
		if old.ForName(argument.Name) == nil && argument.Type.NonNull && argument.DefaultValue == nil {
			b.add("argument %s(%s) is new and required", field, argument.Name)
		}
	}
}

// inputs compares the fields of input objects.
func (b *breakage) inputs(old, now *ast.Definition) {
	for _, field := range old.Fields {
		name := "input field " + old.Name + "." + field.Name
		next := now.Fields.ForName(field.Name)
		if next == nil {
			b.add("%s was removed", name)
			continue
		}
		b.taken(name, field.Type, next.Type, field.DefaultValue, next.DefaultValue)
	}
	for _, field := range now.Fields {
		if old.Fields.ForName(field.Name) == nil && field.Type.NonNull && field.DefaultValue == nil {
			b.add("input field %s.%s is new and required", old.Name, field.Name)
		}
	}
}

// taken compares something a client sends: its type, and the default for when it is left out.
func (b *breakage) taken(name string, old, now *ast.Type, oldDefault, newDefault *ast.Value) {
	if !inputFits(old, now, newDefault != nil) {
		b.add("%s was %s and is %s", name, old, now)
	}
	if oldDefault != nil && (newDefault == nil || newDefault.String() != oldDefault.String()) {
		b.add("the default of %s was %s and is %s", name, text(oldDefault), text(newDefault))
	}
}

func text(value *ast.Value) string {
	if value == nil {
		return "none"
	}
	return value.String()
}

// outputFits reports whether a client that reads old can read now: the same, or never null where it could be.
func outputFits(old, now *ast.Type) bool {
	if old.NonNull && !now.NonNull {
		return false
	}
	return sameShape(old, now, outputFits)
}

// inputFits reports whether a client that sends old may go on: the same, or null allowed where it was not. With a
// default, what was left out is not missed, though a null that was sent would be.
func inputFits(old, now *ast.Type, defaulted bool) bool {
	if now.NonNull && !old.NonNull && !defaulted {
		return false
	}
	return sameShape(old, now, func(old, now *ast.Type) bool { return inputFits(old, now, false) })
}

func sameShape(old, now *ast.Type, inner func(old, now *ast.Type) bool) bool {
	if old.Elem == nil || now.Elem == nil {
		return old.Elem == nil && now.Elem == nil && old.NamedType == now.NamedType
	}
	return inner(old.Elem, now.Elem)
}
