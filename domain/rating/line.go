package rating

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/money"
)

// Line is what a project used of one thing under one price in the period.
type Line struct {
	// Key names the line: it is the same whenever the period is rated again.
	Key string `json:"key"`
	Heading
	// Price is the origin of the price; empty when nothing is priced, and then the amount is 0.
	Price string `json:"price,omitempty"`
	// Quantity is what was used, and Billed what is paid for: sessions are rounded up.
	Quantity money.Decimal `json:"quantity"`
	Billed   money.Decimal `json:"billed"`
	// Exact is the amount at twelve places, and Amount the amount in minor units of the currency, each rounded once,
	// half to even.
	Exact  money.Decimal `json:"exact"`
	Amount money.Decimal `json:"amount"`
	// Shares are the uses, whose amounts sum to the line's.
	Shares []Share `json:"shares"`
}

// Share is a part of a line.
type Share struct {
	Use
	Quantity money.Decimal `json:"quantity"`
	Billed   money.Decimal `json:"billed"`
	Amount   money.Decimal `json:"amount"`
}

// Result is a rated period.
type Result struct {
	Engine   int       `json:"engine"`
	Tenant   string    `json:"tenant"`
	Currency string    `json:"currency"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Prices and Input are the SHA-256 of the prices and of the usage, in hex.
	Prices string `json:"prices"`
	Input  string `json:"input"`
	// Lines are in the order of what they are about.
	Lines []Line `json:"-"`
}

// Bytes writes the result in its one form: a line of JSON for the result, and one for each of its lines.
func (r *Result) Bytes() []byte {
	var out bytes.Buffer
	write(&out, r)
	for i := range r.Lines {
		write(&out, &r.Lines[i])
	}
	return out.Bytes()
}

// Digest is the SHA-256 of Bytes, in hex.
func (r *Result) Digest() string { return digest(r.Bytes()) }

// JSON is the line in its one form.
func (l *Line) JSON() []byte {
	var out bytes.Buffer
	write(&out, l)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func write(out *bytes.Buffer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // text, numbers and times always encode
	}
}

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:])
}

// HashPrices is the SHA-256 of a set of prices, in hex, whatever their order.
func HashPrices(prices []Price) string {
	sorted := slices.Clone(prices)
	slices.SortFunc(sorted, func(a, b Price) int { return cmp.Compare(a.ID, b.ID) })
	var out bytes.Buffer
	for i := range sorted {
		sorted[i].From, sorted[i].To = sorted[i].From.UTC(), sorted[i].To.UTC()
		write(&out, &sorted[i])
	}
	return digest(out.Bytes())
}

// key names the line of a heading under the prices of one origin.
func (h Heading) key(origin string) string {
	return digest([]byte(strings.Join([]string{h.Project, h.Meter, h.Unit, h.SKU, h.Region, h.Borne, origin},
		"\x00")))[:32]
}

// compare orders headings as lines are ordered.
func (h Heading) compare(o Heading) int {
	return cmp.Or(cmp.Compare(h.Project, o.Project), cmp.Compare(h.Meter, o.Meter), cmp.Compare(h.SKU, o.SKU),
		cmp.Compare(h.Region, o.Region), cmp.Compare(h.Unit, o.Unit), cmp.Compare(h.Borne, o.Borne))
}
