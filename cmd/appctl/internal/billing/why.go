package billing

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// why returns the command that explains a line of a statement.
func why(t *command.Tool) *cobra.Command {
	var records int
	cmd := command.Verb(t, "why PERIOD LINE", "Show why a line of the project's statement costs what it costs", viewWhy,
		func(ctx context.Context, args []string) (*gql.LineExplanation, error) {
			project, err := t.ProjectID(ctx)
			if err != nil {
				return nil, err
			}
			answer, err := gql.ExplainLine(ctx, t, project, args[0], args[1], records)
			return &answer.ExplainLine, err
		})
	cmd.Flags().IntVar(&records, "records", 10, "how many usage records to list, 1 to 1000")
	cmd.Long = "Show why a line of the project's statement costs what it costs: its bookings, members, requesters " +
		"and usage records.\n" +
		"PERIOD is the one that the usage belongs to, and LINE the line's key: `appctl billing statement -o json` " +
		"has both."
	return cmd
}

// viewWhy shows the line, and below it bookings, shares and records.
func viewWhy(e *gql.LineExplanation) command.View {
	return command.Detail(e, e.Key, func(p *render.Page) {
		p.Fields("Used", e.Quantity+" "+e.Unit+" of "+e.Meter+" "+e.Sku+" "+e.Region, "Billed", e.Billed,
			"Exact", e.Exact, "Amount", money(e.Amount, e.Currency), "Price", textOf(e.PriceId))
		command.Table[gql.LineBooking]{
			Heading: []string{"BOOKING", "RUN", "QUANTITY", "AMOUNT", "BOOKED"},
			Row: func(b *gql.LineBooking) []string {
				return []string{b.Id, b.RunId, b.Quantity, b.Amount + " " + e.Currency, render.Time(&b.BookedAt)}
			},
		}.Under(p, "Bookings", e.Bookings)
		shareTable(e.Currency).Under(p, fmt.Sprintf("Shares (%d)", e.ShareCount), e.Shares)
		recordTable.Under(p, fmt.Sprintf("Records (%d)", e.RecordCount), e.Records)
	})
}

func money(amount *string, currency string) string {
	if amount == nil {
		return "no price set"
	}
	return *amount + " " + currency
}

func shareTable(currency string) command.Table[gql.LineShare] {
	return command.Table[gql.LineShare]{
		Heading: []string{"MEMBER", "ALLOCATION OR VOLUME", "QUANTITY", "AMOUNT", "OPERATION", "BY", "AUDIT"},
		Row: func(s *gql.LineShare) []string {
			kind, by, entry := textOf(s.OperationId), "", ""
			if o := s.Operation; o != nil {
				kind, by, entry = o.Kind+" "+o.Id, textOf(o.ActorName), textOf(o.AuditId)
			}
			return []string{textOf(s.MemberId), cmp.Or(textOf(s.AllocationId), textOf(s.VolumeId)), s.Quantity,
				s.Amount + " " + currency, kind, by, entry}
		},
		ID: func(s *gql.LineShare) string { return textOf(s.MemberId) },
	}
}

var recordTable = command.Table[gql.LineRecord]{
	Heading: []string{"FROM", "TO", "QUANTITY", "SOURCE", "ID"},
	Row: func(r *gql.LineRecord) []string {
		return []string{render.Time(&r.FromAt), render.Time(&r.ToAt), r.Quantity, r.Source, r.UsageId}
	},
	ID: func(r *gql.LineRecord) string { return r.UsageId },
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
