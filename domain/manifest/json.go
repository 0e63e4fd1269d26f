package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
)

const (
	// MaxDocument bounds a manifest, in bytes.
	MaxDocument = 256 << 10
	// MaxConfig bounds an instance's configuration and an action's input, in bytes.
	MaxConfig = 64 << 10
	// MaxDepth bounds how deep any of these documents nest.
	MaxDepth = 32
	// maxNumber bounds the characters of a number. Together with maxExponent it keeps exact arithmetic, as a
	// schema's multipleOf needs it, from growing without end.
	maxNumber   = 40
	maxExponent = 308
)

// decode reads one JSON document of at most limit bytes: no member twice, no trailing text, bounded depth and
// numbers. Numbers stay json.Number, so that nothing is rounded. A finding names its path below root.
func decode(data []byte, limit int, root string) (any, *fault.Reason) {
	if len(data) > limit {
		return nil, &fault.Reason{Code: fault.TooLong, Message: fmt.Sprintf("must be at most %d bytes", limit),
			Path: root}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, reason := decodeValue(decoder, root, 0)
	if reason != nil {
		return nil, reason
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &fault.Reason{Code: fault.BadValue, Message: "must be one JSON document", Path: root}
	}
	return value, nil
}

// decodeValue reads the next value.
func decodeValue(decoder *json.Decoder, path string, depth int) (any, *fault.Reason) {
	token, err := decoder.Token()
	if err != nil {
		return nil, notJSON(path)
	}
	if depth > MaxDepth {
		return nil, &fault.Reason{Code: fault.TooDeep, Message: fmt.Sprintf("nests deeper than %d", MaxDepth),
			Path: path}
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return decodeObject(decoder, path, depth)
		}
		return decodeArray(decoder, path, depth)
	case json.Number:
		return token, checkNumber(token, path)
	case string:
		return token, checkText(token, path)
	}
	return token, nil
}

// checkText refuses the character NUL, which PostgreSQL's JSON cannot hold: a query over many documents would fail for
// the one that has it.
func checkText(text, path string) *fault.Reason {
	if strings.Contains(text, "\x00") {
		return &fault.Reason{Code: fault.BadValue, Message: "must not contain the character NUL", Path: path}
	}
	return nil
}

// decodeObject reads members up to the closing brace.
func decodeObject(decoder *json.Decoder, path string, depth int) (any, *fault.Reason) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, notJSON(path)
		}
		name, _ := token.(string) // a member's name always is one
		at := join(path, strings.ReplaceAll(name, "\x00", ""))
		if reason := checkText(name, at); reason != nil {
			return nil, reason
		}
		if _, twice := object[name]; twice {
			return nil, &fault.Reason{Code: fault.Duplicate, Message: "the member is given twice", Path: at}
		}
		value, reason := decodeValue(decoder, at, depth+1)
		if reason != nil {
			return nil, reason
		}
		object[name] = value
	}
	return object, closing(decoder, path)
}

// decodeArray reads elements up to the closing bracket.
func decodeArray(decoder *json.Decoder, path string, depth int) (any, *fault.Reason) {
	array := []any{}
	for decoder.More() {
		value, reason := decodeValue(decoder, join(path, strconv.Itoa(len(array))), depth+1)
		if reason != nil {
			return nil, reason
		}
		array = append(array, value)
	}
	return array, closing(decoder, path)
}

// closing reads the brace or bracket that ends a value.
func closing(decoder *json.Decoder, path string) *fault.Reason {
	if _, err := decoder.Token(); err != nil {
		return notJSON(path)
	}
	return nil
}

// checkNumber refuses numbers that only serve to make arithmetic expensive.
func checkNumber(number json.Number, path string) *fault.Reason {
	_, exponent, _ := strings.Cut(strings.ToLower(number.String()), "e")
	size, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	if exponent == "" {
		size, err = 0, nil
	}
	if len(number) > maxNumber || err != nil || size > maxExponent || size < -maxExponent {
		return &fault.Reason{Code: fault.BadValue, Message: "the number is too long or too large", Path: path}
	}
	return nil
}

// notJSON returns the finding for text that is not JSON.
func notJSON(path string) *fault.Reason {
	return &fault.Reason{Code: fault.BadValue, Message: "is not valid JSON", Path: path}
}

// maxPath bounds the path that a finding names, in bytes: member names are the caller's own text.
const maxPath = 200

// join appends a member's name or an element's index to a path.
func join(path, name string) string {
	if len(path)+len(name) > maxPath {
		return strings.ToValidUTF8((path + "." + name)[:maxPath], "") + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
