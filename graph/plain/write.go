package plain

import (
	"bytes"
	"context"
	"encoding/json"
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

// object writes what was selected of an object.
func (w *writer) object(selected *selection, obj any) error {
	for i := range selected.steps {
		s := &selected.steps[i]
		w.dst = append(w.dst, s.key...)
		switch {
		case s.fixed != "":
			w.dst = append(w.dst, s.fixed...)
		case s.field.leaf != nil:
			w.dst = s.field.leaf(w.dst, obj)
		default:
			if err := w.below(s, obj); err != nil {
				return err
			}
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// below writes a field that has selections of its own.
func (w *writer) below(s *step, obj any) error {
	ctx, args := w.ctx, Args(nil)
	if s.args {
		args = s.asked.ArgumentMap(w.variables)
	}
	if s.root {
		ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{
			Object: "Query", Field: s.asked, Args: args, IsResolver: true, IsMethod: true,
		})
	}
	if s.field.many != nil {
		found, err := s.field.many(ctx, obj, args)
		if err != nil {
			return err
		}
		return w.list(s.below, found)
	}
	found, err := s.field.one(ctx, obj, args)
	if err != nil {
		return err
	}
	if found == nil {
		w.dst = append(w.dst, "null"...)
		return nil
	}
	return w.object(s.below, found)
}

func (w *writer) list(selected *selection, found List) error {
	w.dst = append(w.dst, '[')
	for i := range found.Len() {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if err := w.object(selected, found.At(i)); err != nil {
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
