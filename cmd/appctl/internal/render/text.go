package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time returns an instant in UTC to the second; empty for none.
func Time(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05Z")
}

// Text returns the text behind a pointer; empty for none.
func Text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Number returns the number behind a pointer in a format such as %d; empty for none.
func Number[N int | float64](number *N, format string) string {
	if number == nil {
		return ""
	}
	return fmt.Sprintf(format, *number)
}

// Bound returns the number behind a pointer, or for nil the text none.
func Bound(number *int, none string) string {
	if number == nil {
		return none
	}
	return fmt.Sprint(*number)
}

// If returns the text when the condition holds, and nothing otherwise.
func If(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// Yes returns yes or nothing.
func Yes(is bool) string { return If(is, "yes") }

// YesNo returns yes or no.
func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// Plural returns a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Joined joins the texts that are not empty.
func Joined(separator string, texts ...string) string {
	var found []string
	for _, text := range texts {
		if text != "" {
			found = append(found, text)
		}
	}
	return strings.Join(found, separator)
}

// Document returns JSON as text; empty for an empty value.
func Document(text []byte) string {
	switch string(text) {
	case "null", "{}", "[]":
		return ""
	}
	return string(text)
}

// Bytes returns an amount with a unit of a power of 1024, and at most one digit after the point.
func Bytes(amount float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if amount < 1000 {
			return strings.TrimSuffix(strconv.FormatFloat(amount, 'f', 1, 64), ".0") + " " + unit
		}
		amount /= 1024
	}
	return strings.TrimSuffix(strconv.FormatFloat(amount, 'f', 1, 64), ".0") + " TiB"
}
