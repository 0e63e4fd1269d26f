package transport

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// strict checks variables against the built-in scalars and enums as the specification
// coerces them. The library is laxer: it takes 7 for a String, "7" for an Int, any case
// for an enum value. What it does check (nulls, unknown and missing fields, custom
// scalars) is left to it.
func strict(schema *ast.Schema, op *ast.OperationDefinition, variables map[string]any) *gqlerror.Error {
	for _, def := range op.VariableDefinitions {
		c := coercion{schema: schema, path: ast.Path{ast.PathName("variable"), ast.PathName(def.Variable)}}
		if err := c.value(def.Type, variables[def.Variable]); err != nil {
			return err
		}
	}
	return nil
}

type coercion struct {
	schema *ast.Schema
	path   ast.Path
}

func (c *coercion) value(want *ast.Type, v any) *gqlerror.Error {
	if v == nil {
		return nil
	}
	if want.Elem != nil {
		return c.list(want.Elem, v)
	}
	def := c.schema.Types[want.NamedType]
	if def == nil {
		return nil
	}
	switch def.Kind {
	case ast.InputObject:
		return c.object(def, v)
	case ast.Enum:
		return c.enum(def, v)
	default:
		return c.scalar(def.Name, v)
	}
}

// list checks each element; a single value counts as a list of one.
func (c *coercion) list(want *ast.Type, v any) *gqlerror.Error {
	values, ok := v.([]any)
	if !ok {
		return c.value(want, v)
	}
	for i, element := range values {
		if err := c.at(ast.PathIndex(i), want, element); err != nil {
			return err
		}
	}
	return nil
}

func (c *coercion) object(def *ast.Definition, v any) *gqlerror.Error {
	fields, ok := v.(map[string]any)
	if !ok {
		return c.refuse("must be an object (" + def.Name + ")")
	}
	for _, field := range def.Fields {
		if err := c.at(ast.PathName(field.Name), field.Type, fields[field.Name]); err != nil {
			return err
		}
	}
	if def.Directives.ForName("oneOf") != nil && !exactlyOne(fields) {
		return c.refuse("must have exactly one field, not null (" + def.Name + ")")
	}
	return nil
}

func exactlyOne(fields map[string]any) bool {
	for _, v := range fields {
		return len(fields) == 1 && v != nil
	}
	return false
}

// at checks a value one step further down.
func (c *coercion) at(step ast.PathElement, want *ast.Type, v any) *gqlerror.Error {
	c.path = append(c.path, step)
	err := c.value(want, v)
	c.path = c.path[:len(c.path)-1]
	return err
}

func (c *coercion) enum(def *ast.Definition, v any) *gqlerror.Error {
	name, ok := v.(string)
	if !ok || !slices.ContainsFunc(def.EnumValues, func(e *ast.EnumValueDefinition) bool { return e.Name == name }) {
		return c.refuse("must be a value of " + def.Name)
	}
	return nil
}

func (c *coercion) scalar(name string, v any) *gqlerror.Error {
	ok := true
	switch name {
	case "String":
		_, ok = v.(string)
	case "Boolean":
		_, ok = v.(bool)
	case "ID":
		_, isText := v.(string)
		ok = isText || integer(v, math.MinInt64, math.MaxInt64)
	case "Int":
		ok = integer(v, math.MinInt32, math.MaxInt32)
	case "Float":
		ok = number(v)
	}
	if !ok {
		return c.refuse("must be " + map[string]string{
			"String": "text", "Boolean": "true or false", "ID": "an id", "Int": "a whole number of 32 bits",
			"Float": "a number",
		}[name])
	}
	return nil
}

func (c *coercion) refuse(message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Path: slices.Clone(c.path)}
}

// integer reports whether a decoded number is whole and in range.
func integer(v any, low, high int64) bool {
	switch v := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return err == nil && n >= low && n <= high
	case int:
		return int64(v) >= low && int64(v) <= high
	case int64:
		return v >= low && v <= high
	}
	return false
}

func number(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, err := v.Float64()
		return err == nil
	case int, int64, float64:
		return true
	}
	return false
}
