// Package page is how lists are read: by keyset, in pages of bounded size, with cursors that are
// checked before they reach SQL.
package page

import (
	"encoding/base64"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/fault"
)

// Max is the most rows of a page.
const Max = 100

// maxCursor bounds a cursor, in bytes.
const maxCursor = 512

// Args are which part of a list a caller requests.
type Args struct {
	First int
	After string
}

// Of reads the arguments of a field, with the field's default and the most it gives.
// INVALID_ARGUMENT at `first` when it is out of bounds.
func Of(first *int, after *string, standard, most int) (Args, error) {
	args := Args{First: standard}
	if first != nil {
		args.First = *first
	}
	if args.First < 1 || args.First > most {
		return Args{}, fault.New(fault.InvalidArgument, "first must be 1 to %d", most).At("first")
	}
	if after != nil {
		args.After = *after
	}
	return args, nil
}

// Cursor is the opaque text of a row's place: its list's name and the values of its order.
func Cursor(list string, values ...any) string {
	encoded, err := json.Marshal(append([]any{list}, values...))
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// Decode reads a cursor of the list into values; an empty cursor leaves them as they are.
// CURSOR_INVALID at `after` when it is malformed or of another list.
func (a Args) Decode(list string, values ...any) error {
	if a.After == "" {
		return nil
	}
	invalid := fault.New(fault.CursorInvalid, "the cursor is not from this list").At("after")
	if len(a.After) > maxCursor {
		return invalid
	}
	decoded, err := base64.RawURLEncoding.DecodeString(a.After)
	if err != nil {
		return invalid.Because(err)
	}
	var parts []json.RawMessage
	var name string
	if err := json.Unmarshal(decoded, &parts); err != nil || len(parts) != len(values)+1 {
		return invalid
	}
	if err := json.Unmarshal(parts[0], &name); err != nil || name != list {
		return invalid
	}
	for i, value := range values {
		if string(parts[i+1]) == "null" { // which would leave the value as it is, and begin anew unseen
			return invalid
		}
		if err := json.Unmarshal(parts[i+1], value); err != nil {
			return invalid.Because(err)
		}
	}
	return nil
}

// Page is some rows of a list, in order.
type Page[T any] struct {
	Rows    []T
	Cursors []string // one a row
	HasNext bool
	HasPrev bool
}

// Cut makes a page from up to First+1 rows: the extra one only shows that more follow.
func Cut[T any](args Args, rows []T, cursor func(T) string) *Page[T] {
	out := &Page[T]{HasPrev: args.After != ""}
	if len(rows) > args.First {
		rows, out.HasNext = rows[:args.First], true
	}
	out.Rows, out.Cursors = rows, make([]string, len(rows))
	for i, row := range rows {
		out.Cursors[i] = cursor(row)
	}
	return out
}
