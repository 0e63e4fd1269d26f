// Package values builds JSON objects from command-line arguments: a file, inline JSON, and key=value pairs on top.
package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Bounds of what is read and built.
const (
	maxInput = 1 << 20
	maxDepth = 16
)

// ReadFile reads a file, or standard input for "-", up to 1 MiB.
func ReadFile(path string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxInput)
	}
	return text, nil
}

// Document checks that the text is one JSON value.
func Document(name string, text []byte) (json.RawMessage, error) {
	var value any
	if err := decode(text, &value); err != nil {
		return nil, fmt.Errorf("%s: not JSON: %w", name, err)
	}
	return json.RawMessage(bytes.TrimSpace(text)), nil
}

func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the JSON value")
	}
	return nil
}

// Build lays key=value pairs over a base document, which must be an object when there are pairs. A key's dots lead
// into objects, and a number between them into a list. A value that reads as JSON is that JSON, so 3 is a number
// and "3" a text; any other is taken as text. Without base and pairs the result is nil.
func Build(base json.RawMessage, pairs []string) (json.RawMessage, error) {
	return BuildBy(nil, base, pairs)
}

// BuildBy is [Build] by a JSON Schema, which may be nil: where its type is text alone, a value is the text as it was
// written, so that 3 is "3" there.
func BuildBy(schema, base json.RawMessage, pairs []string) (json.RawMessage, error) {
	if len(pairs) == 0 {
		return base, nil
	}
	var root any = map[string]any{}
	if len(base) > 0 {
		if err := decode(base, &root); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
	}
	for _, pair := range pairs {
		key, text, found := strings.Cut(pair, "=")
		path := strings.Split(key, ".")
		if !found || key == "" {
			return nil, fmt.Errorf("--set %q: must be key=value", pair)
		}
		if len(path) > maxDepth {
			return nil, fmt.Errorf("--set %q: nests deeper than %d", pair, maxDepth)
		}
		var err error
		if root, err = put(root, path, valueBy(schema, path, text)); err != nil {
			return nil, fmt.Errorf("--set %q: %w", pair, err)
		}
	}
	return json.Marshal(root)
}

// Guesses reports whether a pair's value reads as JSON other than a text, so that a schema may take it for one.
func Guesses(pairs []string) bool {
	for _, pair := range pairs {
		_, text, _ := strings.Cut(pair, "=")
		if _, isText := value(text).(string); !isText {
			return true
		}
	}
	return false
}

// valueBy reads the text for the place that the path leads to.
func valueBy(schema json.RawMessage, path []string, text string) any {
	read := value(text)
	if _, isText := read.(string); !isText && isTextAt(schema, path) {
		return text
	}
	return read
}

// isTextAt reports whether the schema's type at the path is text alone. It follows properties and items.
func isTextAt(schema json.RawMessage, path []string) bool {
	var at struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(schema, &at) != nil {
		return false
	}
	if len(path) == 0 {
		return at.Type == "string"
	}
	if below, found := at.Properties[path[0]]; found {
		return isTextAt(below, path[1:])
	}
	if _, err := strconv.Atoi(path[0]); err == nil {
		return isTextAt(at.Items, path[1:])
	}
	return false
}

// value reads the text as JSON, or takes it as it is.
func value(text string) any {
	var read any
	if decode([]byte(text), &read) == nil {
		return read
	}
	return text
}

// put sets what lies at the path below the node and returns the changed node.
func put(node any, path []string, what any) (any, error) {
	if len(path) == 0 {
		return what, nil
	}
	if path[0] == "" {
		return nil, errors.New("a part of the key is empty")
	}
	switch node := node.(type) {
	case nil:
		return put(map[string]any{}, path, what)
	case map[string]any:
		below, err := put(node[path[0]], path[1:], what)
		node[path[0]] = below
		return node, err
	case []any:
		return putInList(node, path, what)
	default:
		return nil, fmt.Errorf("%q cannot be set: its parent is not an object", path[0])
	}
}

// putInList replaces an element, or appends one right after the last.
func putInList(list []any, path []string, what any) (any, error) {
	index, err := strconv.Atoi(path[0])
	if err != nil || index < 0 || index > len(list) {
		return nil, fmt.Errorf("%q is not an index from 0 to %d", path[0], len(list))
	}
	if index == len(list) {
		list = append(list, nil)
	}
	list[index], err = put(list[index], path[1:], what)
	return list, err
}
