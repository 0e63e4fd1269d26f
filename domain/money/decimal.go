// Package money is exact decimal arithmetic for amounts and quantities. It has no floating point anywhere: a test of
// the house refuses it in every package that touches money.
package money

import (
	"database/sql/driver"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/gpuaas/app-platform/domain/fault"
)

const (
	// Scale is the most decimal places of a quantity or an amount, as the database stores them: numeric(38,12).
	Scale = 12
	// digits bounds what is read: 26 before the point, as numeric(38,12) has them.
	digits = 26
	// precision is more than the product of two stored numbers and a sum of 10^20 of them needs, so that an operation
	// of this package rounds only where its name states it.
	precision = 120
)

// exact never rounds: an operation that would is refused, and that is an error of the program.
var exact = apd.Context{Precision: precision, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent,
	Traps: apd.DefaultTraps | apd.Inexact}

// written is a decimal number in its plain form.
var written = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// Decimal is an exact decimal number. The zero value is 0. It is immutable: every operation answers a new one.
type Decimal struct{ value apd.Decimal }

// Parse reads a number in plain form, at most 26 digits before the point and Scale after it. INVALID_ARGUMENT
// otherwise.
func Parse(text string) (Decimal, error) {
	whole, places, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if !written.MatchString(text) || len(whole) > digits || len(places) > Scale {
		return Decimal{}, fault.New(fault.InvalidArgument,
			"%.60q is not a decimal number of at most %d digits before the point and %d after it", text, digits, Scale)
	}
	parsed, _, err := apd.NewFromString(text)
	if err != nil {
		return Decimal{}, fault.New(fault.InvalidArgument, "%.60q is not a decimal number", text)
	}
	return Decimal{value: *parsed}, nil
}

// Must is Parse for constants: it panics when the text is not a number.
func Must(text string) Decimal {
	parsed, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// Int returns a whole number.
func Int(n int64) Decimal { return Decimal{value: *apd.New(n, 0)} }

// Shift returns n × 10^-places, such as micros with 6.
func Shift(n int64, places int32) Decimal { return Decimal{value: *apd.New(n, -places)} }

// of returns n × 10^-places.
func of(n *big.Int, places int32) Decimal {
	return Decimal{value: *apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(n), -places)}
}

type operation func(d, x, y *apd.Decimal) (apd.Condition, error)

func (d Decimal) with(other Decimal, do operation) Decimal {
	var out Decimal
	if _, err := do(&out.value, &d.value, &other.value); err != nil {
		panic(fmt.Errorf("money: %w", err)) // the precision suffices for stored numbers
	}
	return out
}

// Add returns d + other.
func (d Decimal) Add(other Decimal) Decimal { return d.with(other, exact.Add) }

// Sub returns d - other.
func (d Decimal) Sub(other Decimal) Decimal { return d.with(other, exact.Sub) }

// Mul returns d × other.
func (d Decimal) Mul(other Decimal) Decimal { return d.with(other, exact.Mul) }

// Neg returns -d.
func (d Decimal) Neg() Decimal { return Decimal{}.Sub(d) }

// Cmp returns -1, 0 or 1 as d is less than, equal to or more than other.
func (d Decimal) Cmp(other Decimal) int { return d.value.Cmp(&other.value) }

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.value.Sign() }

// IsZero reports whether d is 0.
func (d Decimal) IsZero() bool { return d.Sign() == 0 }

// Min returns the lesser of the two.
func (d Decimal) Min(other Decimal) Decimal {
	if other.Cmp(d) < 0 {
		return other
	}
	return d
}

// Max returns the greater of the two.
func (d Decimal) Max(other Decimal) Decimal {
	if other.Cmp(d) > 0 {
		return other
	}
	return d
}

// String returns the one plain form: no exponent, no zeros at the end, no minus before 0.
func (d Decimal) String() string {
	if d.IsZero() {
		return "0"
	}
	text := d.value.Text('f')
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Fixed returns the number with exactly so many places; it must have no more.
func (d Decimal) Fixed(places int32) string {
	n := d.scaled(places)
	sign := ""
	if n.Sign() < 0 {
		sign, n = "-", n.Neg(n)
	}
	text := n.String()
	if places == 0 {
		return sign + text
	}
	text = strings.Repeat("0", max(0, int(places)+1-len(text))) + text
	at := len(text) - int(places)
	return sign + text[:at] + "." + text[at:]
}

// MarshalJSON writes the number as a string, which no reader turns into floating point.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if len(text)+2 != len(raw) {
		return fault.New(fault.InvalidArgument, "a decimal number must be a string")
	}
	parsed, err := Parse(text)
	*d = parsed
	return err
}

// MarshalGQL writes the number as a string.
func (d Decimal) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, `"`+d.String()+`"`) }

// UnmarshalGQL reads a number from a string. INVALID_ARGUMENT when it is not one.
func (d *Decimal) UnmarshalGQL(v any) error {
	text, ok := v.(string)
	if !ok {
		return fault.New(fault.InvalidArgument, "a decimal number must be a string, such as \"2.50\"")
	}
	parsed, err := Parse(text)
	*d = parsed
	return err
}

// Scan reads a numeric column. An error for NULL: scan a nullable column into a pointer.
func (d *Decimal) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("money: a column is %T, and not a number", src)
	}
	if strings.Contains(text, ".") { // the database keeps zeros at the end
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	parsed, err := Parse(text)
	*d = parsed
	return err
}

// Value is what a numeric parameter of a statement is sent as.
func (d Decimal) Value() (driver.Value, error) { return d.String(), nil }

// scaled returns d × 10^places as a whole number; d must have no more places.
func (d Decimal) scaled(places int32) *big.Int {
	n, rest := d.split(places)
	if rest.Sign() != 0 {
		panic(fmt.Sprintf("money: %s has more than %d places", d, places))
	}
	return n
}

// split returns d × 10^places toward zero, and what is left of it in units of its own last place.
func (d Decimal) split(places int32) (whole, rest *big.Int) {
	n := d.value.Coeff.MathBigInt() // a copy
	if d.value.Negative {
		n.Neg(n)
	}
	up := d.value.Exponent + places
	return n.QuoRem(n.Mul(n, power(up)), power(-up), new(big.Int))
}

// power returns 10^n, and 1 for a negative n.
func power(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
