// Package export writes statements as files: JSON, CSV, Parquet and FOCUS.
package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/focus"
)

// Export is a statement as a file.
type Export struct {
	FileName, MediaType string
	// Body is the file; in base64 when Base64 is set, as it is for a file that is not text.
	Body   string
	Base64 bool
}

// Statement reads a statement and writes it in a format. Key and faults as of billing's Statement; INVALID_ARGUMENT at
// focus for a version of FOCUS that is not written.
func Statement(ctx context.Context, books *billing.Service, filter billing.Filter, format rating.StatementFormat,
	wanted string) (*Export, error) {
	version, err := focus.Version(wanted)
	if err != nil {
		return nil, err
	}
	s, err := books.Statement(ctx, filter)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("statement-%s", s.Period.StartsAt.Format("2006-01"))
	switch format {
	case rating.JSON:
		return &Export{FileName: name + ".json", MediaType: "application/json", Body: document(s)}, nil
	case rating.CSV:
		return &Export{FileName: name + ".csv", MediaType: "text/csv",
			Body: table(append([][]string{lineHeading}, lineRows(s)...))}, nil
	case rating.Parquet:
		return columnar(s, name)
	case rating.FocusCSV:
		return &Export{FileName: name + ".focus.csv", MediaType: "text/csv",
			Body: table(focus.Table(charges(s), version))}, nil
	case rating.FocusJSON:
		return &Export{FileName: name + ".focus.jsonl", MediaType: "application/x-ndjson",
			Body: jsonLines(focus.Table(charges(s), version))}, nil
	}
	return nil, fault.New(fault.InvalidArgument, "%.20q is not a format", format).At("format")
}

// shownLine is a line as JSON has it: money is text, with its currency.
type shownLine struct {
	Key        string  `json:"key"`
	Project    string  `json:"projectId"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Correction bool    `json:"correction"`
	Meter      string  `json:"meter"`
	Unit       string  `json:"unit"`
	SKU        string  `json:"sku"`
	Region     string  `json:"region"`
	Price      *string `json:"priceId"`
	Quantity   string  `json:"quantity"`
	Billed     string  `json:"billed"`
	Currency   string  `json:"currency"`
	Amount     *string `json:"amount"`
}

func shown(s *billing.Statement, l *billing.Line) shownLine {
	out := shownLine{Key: l.Key, Project: string(l.ProjectID), From: stamp(l.From), To: stamp(l.To),
		Correction: l.Correction, Meter: l.Meter,
		Unit: l.Unit, SKU: l.SKU, Region: l.Region, Quantity: l.Quantity.String(), Billed: l.Billed.String(),
		Currency: s.Period.Currency}
	if l.PriceID != nil {
		price := string(*l.PriceID)
		out.Price = &price
	}
	if l.Amount != nil {
		amount := minor(s, *l.Amount)
		out.Amount = &amount
	}
	return out
}

// minor writes an amount with the places of the statement's currency.
func minor(s *billing.Statement, amount money.Decimal) string {
	places, err := money.Minor(s.Period.Currency)
	if err != nil {
		return amount.String()
	}
	return amount.Fixed(places)
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func document(s *billing.Statement) string {
	lines := make([]shownLine, len(s.Lines))
	for i, line := range s.Lines {
		lines[i] = shown(s, line)
	}
	encoded, err := json.MarshalIndent(map[string]any{"tenantId": s.TenantID, "projectId": s.ProjectID,
		"periodId": s.Period.ID,
		"from":     stamp(s.Period.StartsAt), "to": stamp(s.Period.EndsAt), "final": s.Final,
		"currency": s.Period.Currency,
		"lines":    lines,
		"charges":  minor(s, s.Charges), "credits": minor(s, s.Credits), "total": minor(s,
			s.Total), "unpriced": s.Unpriced}, "", "  ")
	if err != nil {
		panic(err) // text always encodes
	}
	return string(encoded) + "\n"
}

var lineHeading = []string{"key", "project_id", "from", "to", "correction", "meter", "unit", "sku", "region",
	"price_id", "quantity", "billed",
	"currency", "amount"}

func lineRows(s *billing.Statement) (out [][]string) {
	for _, line := range s.Lines {
		l := shown(s, line)
		out = append(out, []string{l.Key, l.Project, l.From, l.To, fmt.Sprint(l.Correction), l.Meter, l.Unit,
			l.SKU, l.Region, orEmpty(l.Price), l.Quantity, l.Billed, l.Currency, orEmpty(l.Amount)})
	}
	return out
}

// charges are the lines as FOCUS takes them.
func charges(s *billing.Statement) (out []focus.Charge) {
	for _, line := range s.Lines {
		l := shown(s, line)
		charge := focus.Charge{Tenant: string(s.TenantID), TenantName: called(s, s.TenantID), Project: l.Project,
			ProjectName: called(s, line.ProjectID), Currency: l.Currency,
			PeriodStart: stamp(s.Period.StartsAt),
			PeriodEnd:   stamp(s.Period.EndsAt), Start: l.From, End: l.To, Cost: orEmpty(l.Amount),
			Correction: l.Correction,
			Meter:      l.Meter,
			Unit:       l.Unit, SKU: l.SKU, Region: l.Region, Price: orEmpty(l.Price), Consumed: l.Quantity,
			Quantity: l.Billed}
		if s.Final {
			charge.Invoice = string(s.Period.ID)
		}
		out = append(out, charge)
	}
	return out
}

// called is the name of a tenant or a project; its id where the caller does not see the name.
func called(s *billing.Statement, id ids.ID) string { return cmp.Or(s.Names[id], string(id)) }

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func table(rows [][]string) string {
	var out bytes.Buffer
	writer := csv.NewWriter(&out)
	_ = writer.WriteAll(rows) // a buffer does not fail
	return out.String()
}

// jsonLines writes rows below a heading as objects, in which an empty cell is null.
func jsonLines(rows [][]string) string {
	var out bytes.Buffer
	for _, row := range rows[1:] {
		object := make(map[string]*string, len(row))
		for i, cell := range row {
			object[rows[0][i]] = nil
			if cell != "" {
				object[rows[0][i]] = &cell
			}
		}
		encoded, err := json.Marshal(object)
		if err != nil {
			panic(err) // text always encodes
		}
		out.Write(append(encoded, '\n'))
	}
	return out.String()
}
