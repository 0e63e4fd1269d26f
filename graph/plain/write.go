package plain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/graph/scalar"
)

// writer appends one answer.
type writer struct {
	ctx       context.Context
	variables map[string]any
	dst       []byte
}

// object writes what was selected of an object. known is what was resolved ahead of a list that the object is the n-th
// of, nil for nothing.
func (w *writer) object(selected *selection, obj any, known *resolved, n int) error {
	for i := range selected.steps {
		s := &selected.steps[i]
		w.dst = append(w.dst, s.key...)
		switch {
		case s.fixed != "":
			w.dst = append(w.dst, s.fixed...)
		case s.field.leaf != nil:
			w.dst = s.field.leaf(w.dst, obj)
		case known != nil && s.ahead:
			at := &known.steps[i]
			if err := w.value(s, at.values[n], at.below, at.first(n)); err != nil {
				return err
			}
		default:
			found, err := w.take(s, obj)
			if err != nil {
				return err
			}
			if err := w.value(s, found, nil, 0); err != nil {
				return err
			}
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// take returns what an object has in a step's field.
func (w *writer) take(s *step, obj any) (any, error) {
	ctx, args := w.ctx, Args(nil)
	if s.args {
		args = s.asked.ArgumentMap(w.variables)
	}
	if s.root {
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{
			Object: "Query", Field: s.asked, Args: args, IsResolver: true, IsMethod: true,
		})
	}
	return s.field.get(ctx, obj, args)
}

// value writes what a step's field has. Its objects are those from the n-th on of what known was resolved for.
func (w *writer) value(s *step, found any, known *resolved, n int) (err error) {
	if s.field.write != nil {
		w.dst = s.field.write(w.dst, found)
		return nil
	}
	if found == nil {
		w.dst = append(w.dst, "null"...)
		return nil
	}
	if known == nil && s.below.ahead {
		if known, err = w.resolve(s.below, s.objects(nil, found)); err != nil {
			return err
		}
	}
	if s.field.many {
		return w.list(s.below, found.(List), known, n)
	}
	return w.object(s.below, found, known, n)
}

// list writes a list. Its objects are those from the n-th on of what known was resolved for.
func (w *writer) list(selected *selection, found List, known *resolved, n int) error {
	w.dst = append(w.dst, '[')
	for i := range found.Len() {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if err := w.object(selected, found.At(i), known, n+i); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, ']')
	return nil
}

const hex = "0123456789ABCDEF"

// String appends a string as the executor writes it.
func String[S ~string](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '\\' && c != '"' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '\t':
			dst = append(dst, `\t`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\\', '"':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// OptionalString appends a string or null.
func OptionalString[S ~string](dst []byte, s *S) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return String(dst, *s)
}

// Int appends a number.
func Int(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// OptionalInt appends a number, null for nil.
func OptionalInt(dst []byte, n *int) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	return Int(dst, *n)
}

// Float appends a finite number as graphql.MarshalFloatContext writes it.
func Float(dst []byte, f float64) []byte { return fmt.Appendf(dst, "%g", f) }

// Bool appends true or false.
func Bool(dst []byte, b bool) []byte { return strconv.AppendBool(dst, b) }

// Time appends an instant as scalar.DateTime writes it.
func Time(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, scalar.Layout)
	return append(dst, '"')
}

// OptionalTime appends an instant or null.
func OptionalTime(dst []byte, t *time.Time) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	return Time(dst, *t)
}

// JSON appends a stored document as it is, and null for an empty one.
func JSON(dst []byte, document json.RawMessage) []byte {
	if len(bytes.TrimSpace(document)) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, document...)
}

// Strings appends a list of strings.
func Strings[S ~string](dst []byte, list []S) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = String(dst, s)
	}
	return append(dst, ']')
}

// OptionalStrings appends a list of strings, null for nil.
func OptionalStrings[S ~string](dst []byte, list []S) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	return Strings(dst, list)
}
