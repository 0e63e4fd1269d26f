package supportbundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// forms are the patterns of the texts of a kind. None of them matches a key or a password: only ids, states and the
// platform's own names.
var forms = map[Kind]*regexp.Regexp{
	ID:          regexp.MustCompile(`^[a-z]{2,3}_[0-7][0-9a-hjkmnp-tv-z]{25}$`),
	Correlation: regexp.MustCompile(`^([0-9a-f]{32}|sha256:[0-9a-f]{64})$`),
	Enum:        regexp.MustCompile(`^[A-Z]{1,24}(_[A-Z]{1,24}){0,5}$`),
	Word:        regexp.MustCompile(`^[a-z]{1,20}([A-Z]?[a-z]{1,20}|[._-][a-z]{1,20}){0,6}$`),
	Place:       regexp.MustCompile(`^[a-z]{1,24}(-[a-z]{1,24}){0,8}(/[a-z]{1,24}(-[a-z]{1,24}){0,8}){0,2}$`),
	Hex:         regexp.MustCompile(`^[0-9a-f]{32}$`),
}

// why gives the reason for which a value is left out that is not of its kind.
var why = map[Kind]string{
	ID: "it is not a typed id", Enum: "it is not the name of a state or a code",
	Word:  "it is not a name of the platform's",
	Place: "it is not a branch of a runbook", Hex: "it is not a trace's id", Count: "it is not a whole number",
	Flag: "it is neither true nor false", Time: "it is not a time", Correlation: "it is not a correlation id",
	Text: "it may have a secret in it",
}

// value returns a value as its kind is written, and false where it is not of that kind. Of a text what Clean does not
// let through is replaced or left out.
func (k Kind) value(given any) (any, bool) {
	switch given := given.(type) {
	case int:
		return given, k == Count
	case bool:
		return given, k == Flag
	case time.Time:
		return given.UTC().Format(time.RFC3339Nano), k == Time
	case string:
		return k.text(given)
	}
	return nil, false
}

// text returns a text as its kind is written.
func (k Kind) text(given string) (any, bool) {
	switch k {
	case Text:
		return Clean(given)
	case Correlation:
		if !forms[k].MatchString(given) {
			sum := sha256.Sum256([]byte(given))
			return "sha256:" + hex.EncodeToString(sum[:]), true
		}
		return given, true
	case Time, Count, Flag:
		return nil, false
	}
	return given, forms[k].MatchString(given)
}

// read checks a value of a file that is read.
func (k Kind) read(raw json.RawMessage) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	ok := false
	switch value := value.(type) {
	case float64:
		ok = k == Count && value == float64(int64(value))
	case bool:
		ok = k == Flag
	case string:
		ok = k.reads(value)
	}
	if !ok {
		return fmt.Errorf("%s", why[k])
	}
	return nil
}

// reads reports whether a text of a file is of a kind. A text that Clean would change was not written by Clean.
func (k Kind) reads(value string) bool {
	switch k {
	case Time:
		_, err := time.Parse(time.RFC3339Nano, value)
		return err == nil
	case Text:
		again, ok := Clean(value)
		return ok && again == value
	case Count, Flag:
		return false
	}
	return forms[k].MatchString(value)
}
