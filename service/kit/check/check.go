// Package check refuses malformed input: every field at fault is named in one answer.
package check

import (
	"fmt"
	"net/mail"
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gpuaas/app-platform/domain/fault"
)

// MaxReason bounds the reason that a caller gives for what it does, in characters.
const MaxReason = 1_000

// slug is a short name: it becomes part of host names, file names and addresses.
var slug = regexp.MustCompile(`^[a-z][a-z0-9-]{0,38}[a-z0-9]$`)

// Input gathers what is wrong with one call's input.
type Input struct{ reasons []fault.Reason }

// Bad notes that the field at path is wrong.
func (in *Input) Bad(path, format string, args ...any) {
	in.reasons = append(in.reasons, fault.Reason{Code: fault.BadValue, Message: fmt.Sprintf(format, args...),
		Path: path})
}

// Slug wants 2 to 40 lower-case letters, digits and hyphens, starting with a letter.
func (in *Input) Slug(path, value string) {
	if !slug.MatchString(value) {
		in.Bad(path, "must have 2 to 40 lower-case letters, digits and hyphens, starting with a letter and not ending "+
			"with a hyphen")
	}
}

// Text wants least to most characters of printable text.
func (in *Input) Text(path, value string, least, most int) {
	n := utf8.RuneCountInString(value)
	if n < least || n > most || !utf8.ValidString(value) {
		in.Bad(path, "must have %d to %d characters", least, most)
		return
	}
	for _, r := range value {
		if unicode.IsControl(r) {
			in.Bad(path, "must not contain control characters")
			return
		}
	}
}

// Reason wants at most MaxReason characters.
func (in *Input) Reason(path, value string) {
	if utf8.RuneCountInString(value) > MaxReason {
		in.Bad(path, "must have at most %d characters", MaxReason)
	}
}

// Email wants one bare address of at most 254 bytes.
func (in *Input) Email(path, value string) {
	parsed, err := mail.ParseAddress(value)
	if err != nil || parsed.Address != value || len(value) > 254 {
		in.Bad(path, "must be an e-mail address such as person@example.com")
	}
}

// Future wants an instant after now, or none.
func (in *Input) Future(path string, value *time.Time, now time.Time) {
	if value != nil && !value.After(now) {
		in.Bad(path, "must be in the future")
	}
}

// Err is INVALID_ARGUMENT with a reason for every field at fault; nil without any.
func (in *Input) Err() error {
	if len(in.reasons) == 0 {
		return nil
	}
	first := in.reasons[0]
	return fault.New(fault.InvalidArgument, "the input is not valid: %s: %s", first.Path,
		first.Message).With(in.reasons...)
}
