package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"time"
)

// Clip cuts text to at most limit bytes without splitting a character.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit]
}

// IDPattern is what an id of the contract looks like. It is also what makes an id safe as a file name.
var IDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// Canonical rewrites JSON with sorted keys and no white space, so that a platform which stores
// it as jsonb still sends the same specification. What is not JSON stays as it is.
func Canonical(raw json.RawMessage) json.RawMessage {
	if IsNull(raw) {
		return json.RawMessage("null")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	out, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return out
}

// IsNull reports whether raw is absent or the JSON null.
func IsNull(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null"))
}

// NonNil returns an empty list for nil, which JSON would write as null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Pause waits for d. The error is the cause of the end of ctx, when that comes first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
