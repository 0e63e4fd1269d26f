package nodetask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// fields holds the members that an object may have, each with those of the objects below it; nil for a value that is
// not an object.
type fields map[string]fields

// fieldsOf returns the fields that the tags of a type name, so that no list of them is kept beside the type.
func fieldsOf[T any]() fields { return fieldsOfType(reflect.TypeFor[T]()) }

func fieldsOfType(of reflect.Type) fields {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	known := fields{}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		known[name] = fieldsOfType(of.Field(i).Type)
	}
	return known
}

// checker gathers the problems of a specification.
type checker struct {
	problems []Problem
	refs     []SecretRef
}

func (c *checker) add(code Code, path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Code: code, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) bad(path, format string, args ...any) {
	c.add(BadValue, "spec."+path, format, args...)
}

func (c *checker) failed() bool { return len(c.problems) > 0 }

func (c *checker) err() error { return &Invalid{Problems: c.problems} }

// document refuses a text that is not an object, has unknown or repeated members, or holds text that cannot be stored.
func (c *checker) document(raw json.RawMessage, known fields) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		c.add(BadValue, "spec", "must be an object")
		return
	}
	c.object(decoder, "spec", known)
	if c.failed() {
		return
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		c.add(BadValue, "spec", "has more than one document")
	}
}

// object reads the members up to the closing brace.
func (c *checker) object(decoder *json.Decoder, path string, known fields) {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			c.add(BadValue, path, "is not valid JSON")
			return
		}
		name, _ := token.(string) // a member's name always is one
		below, ok := known[name]
		at := path + "." + clip(name)
		switch {
		case !ok:
			c.add(UnknownField, at, "there is no such field")
			return
		case seen[name]:
			c.add(Duplicate, at, "the field is given twice")
			return
		}
		seen[name] = true
		c.value(decoder, at, below)
		if c.failed() {
			return
		}
	}
	_, _ = decoder.Token() // the brace
}

// value reads one value of any type.
func (c *checker) value(decoder *json.Decoder, path string, known fields) {
	token, err := decoder.Token()
	if err != nil {
		c.add(BadValue, path, "is not valid JSON")
		return
	}
	switch token := token.(type) {
	case string:
		if strings.ContainsRune(token, 0) {
			c.add(BadValue, path, "contains a NUL")
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
		c.add(BadValue, path, "must be %s, not %s", typeName(wrong), wrong.Value)
		return
	}
	c.add(BadValue, "spec", "is not valid JSON")
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
