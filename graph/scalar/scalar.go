// Package scalar is how the contract's own scalars read and write.
package scalar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Layout is RFC 3339 with the microseconds that the database keeps.
const Layout = "2006-01-02T15:04:05.000000Z"

// MarshalDateTime writes an instant in UTC with microseconds.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		buffer := make([]byte, 0, len(Layout)+2)
		buffer = append(buffer, '"')
		buffer = t.UTC().AppendFormat(buffer, Layout)
		_, _ = w.Write(append(buffer, '"'))
	})
}

// mostQuoted bounds how much an error quotes of a text that is not an instant, in characters.
const mostQuoted = 40

// UnmarshalDateTime reads an RFC 3339 instant. It fails with INVALID_ARGUMENT for anything else.
func UnmarshalDateTime(v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, fault.New(fault.InvalidArgument,
			"an instant must be a string in RFC 3339, such as 2026-01-31T12:00:00Z")
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fault.New(fault.InvalidArgument,
			"%.*q is not an instant in RFC 3339, such as 2026-01-31T12:00:00Z", mostQuoted, text)
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

// MarshalJSON writes a stored document as it is; an empty one is null.
func MarshalJSON(document json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		if len(bytes.TrimSpace(document)) == 0 {
			_, _ = io.WriteString(w, "null")
			return
		}
		_, _ = w.Write(document)
	})
}

// UnmarshalJSON reads any value that a client gave, as JSON.
func UnmarshalJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a value that JSON cannot hold: %w", err)
	}
	return encoded, nil
}
