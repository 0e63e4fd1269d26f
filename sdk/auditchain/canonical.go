// Package auditchain is the audit's hash chain as anybody can work it out from what the API shows: the
// canonical form of an entry, the hashes, the signed checkpoints, and a verifier that names the first
// place where the chain does not hold. docs/guides/audit.md describes the form byte by byte.
package auditchain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Entry is a privileged attempt with everything that is hashed. Its JSON names are those of the API and
// of the canonical form.
type Entry struct {
	ID            string          `json:"id"`
	TenantID      *string         `json:"tenantId"`
	ProjectID     *string         `json:"projectId"`
	ActorKind     string          `json:"actorKind"`
	ActorID       string          `json:"actorId"`
	ActorName     string          `json:"actorName"`
	PermissionKey string          `json:"permissionKey"`
	Action        string          `json:"action"`
	Allowed       bool            `json:"allowed"`
	ObjectID      string          `json:"objectId"`
	Before        json.RawMessage `json:"before"`
	After         json.RawMessage `json:"after"`
	Reason        string          `json:"reason"`
	Code          string          `json:"code"`
	Repeats       int             `json:"repeats"`
	CorrelationID string          `json:"correlationId"`
	Origin        string          `json:"origin"`
	BreakGlass    bool            `json:"breakGlass"`
	CreatedAt     time.Time       `json:"createdAt"`
}

// instant is how a time is written: UTC, with six digits of a second.
const instant = "2006-01-02T15:04:05.000000Z"

// maxDepth bounds the nesting of a document, maxShift how far a number's exponent moves its point.
const (
	maxDepth = 200
	maxShift = 1_000
)

// Canonical returns the one form of the entry that is hashed. It fails when Before or After is not JSON.
func (e Entry) Canonical() ([]byte, error) {
	before, err := document(e.Before)
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	after, err := document(e.After)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	return appendValue(nil, map[string]any{
		"id": e.ID, "tenantId": optional(e.TenantID), "projectId": optional(e.ProjectID),
		"actorKind": e.ActorKind, "actorId": e.ActorID, "actorName": e.ActorName,
		"permissionKey": e.PermissionKey, "action": e.Action, "allowed": e.Allowed, "objectId": e.ObjectID,
		"before": before, "after": after, "reason": e.Reason, "code": e.Code,
		"repeats": json.Number(strconv.Itoa(e.Repeats)), "correlationId": e.CorrelationID, "origin": e.Origin,
		"breakGlass": e.BreakGlass, "createdAt": e.CreatedAt.UTC().Format(instant),
	}, 0)
}

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// document reads JSON with its numbers as they are written; nothing at all is null.
func document(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return value, nil
}

// appendValue writes a value: members by their names in the order of UTF-16 code units, no space.
func appendValue(out []byte, value any, depth int) (_ []byte, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	switch value := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, value), nil
	case string:
		return appendText(out, value), nil
	case json.Number:
		return appendNumber(out, value.String())
	case []any:
		out = append(out, '[')
		for i, one := range value {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendValue(out, one, depth+1); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case map[string]any:
		return appendObject(out, value, depth)
	}
	return nil, fmt.Errorf("%T is not a JSON value", value)
}

func appendObject(out []byte, object map[string]any, depth int) (_ []byte, err error) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, name), ':')
		if out, err = appendValue(out, object[name], depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// escapes are the characters below space that have a short escape.
var escapes = map[byte]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}

// appendText writes a string as RFC 8785 does: nothing is escaped but quotes, backslashes and what lies
// below space.
func appendText(out []byte, text string) []byte {
	out = append(out, '"')
	for _, r := range text {
		switch short, ok := escapes[byte(r)]; {
		case r < utf8.RuneSelf && ok:
			out = append(out, '\\', short)
		case r < ' ':
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, '"')
}

// appendNumber writes a number's exact value, as RFC 8785 does not: in full, without exponent, without
// zeros that say nothing, so that none is ever rounded.
func appendNumber(out []byte, text string) ([]byte, error) {
	digits, negative := strings.CutPrefix(text, "-")
	digits, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > maxShift || shift < -maxShift {
			return nil, fmt.Errorf("the exponent of the number %.40s is too large", text)
		}
	}
	point := len(whole) + shift
	all := whole + fraction
	if point < 0 {
		all, point = strings.Repeat("0", -point)+all, 0
	}
	if point > len(all) {
		all += strings.Repeat("0", point-len(all))
	}
	whole, fraction = strings.TrimLeft(all[:point], "0"), strings.TrimRight(all[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if negative && (whole != "0" || fraction != "") {
		out = append(out, '-')
	}
	out = append(out, whole...)
	if fraction != "" {
		out = append(append(out, '.'), fraction...)
	}
	return out, nil
}
