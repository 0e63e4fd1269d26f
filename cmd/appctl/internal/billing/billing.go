// Package billing is the commands about the books: periods, runs, statements and their export.
package billing

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about the books.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("billing", "What is owed, and what it is computed from", periods(t), runs(t), verify(t),
		statement(t), export(t),
		why(t), reopen(t), account(t), credits(t))
}

func first(_ context.Context, args []string) (string, error) { return args[0], nil }

func periods(t *command.Tool) *cobra.Command {
	return command.Verb(t, "periods TENANT", "List a tenant's billing periods, newest first", periodTable.View,
		func(ctx context.Context, args []string) ([]gql.BillingPeriod, error) {
			answer, err := gql.ListBillingPeriods(ctx, t, args[0])
			return answer.BillingPeriods, err
		})
}

var periodTable = command.Table[gql.BillingPeriod]{
	Heading: []string{"ID", "FROM", "TO", "STATUS", "CURRENCY"},
	Row: func(p *gql.BillingPeriod) []string {
		return []string{p.Id, render.Time(&p.StartsAt), render.Time(&p.EndsAt), string(p.Status), p.Currency}
	},
}

func runs(t *command.Tool) *cobra.Command {
	return command.Pages(t, "runs TENANT", "List the runs that built a tenant's books, newest first", runTable, first,
		func(ctx context.Context, tenant string, first int, after string) (*gql.BillingRunPage, error) {
			answer, err := gql.ListBillingRuns(ctx, t, tenant, first, after)
			return &answer.BillingRuns, err
		})
}

var runTable = command.Table[gql.BillingRun]{
	Heading: []string{"ID", "PERIOD", "NUMBER", "UP TO", "LINES", "UNPRICED", "RESULT"},
	Row: func(r *gql.BillingRun) []string {
		return []string{r.Id, r.PeriodId, fmt.Sprint(r.Number), render.Time(&r.EventTo), fmt.Sprint(r.Lines),
			fmt.Sprint(r.Unpriced),
			r.OutputDigest[:min(12, len(r.OutputDigest))]}
	},
}

// errDiffers ends a command that found a difference between a run and its repetition.
var errDiffers = fmt.Errorf("the run gives a different result when it is repeated")

// verify returns the command that repeats a run. It fails when anything differs.
func verify(t *command.Tool) *cobra.Command {
	return t.Command("verify RUN", "Repeat a run from its recorded input, and compare byte by byte",
		func(ctx context.Context, args []string) error {
			answer, err := gql.VerifyBillingRun(ctx, t, args[0])
			if err != nil {
				return err
			}
			v := &answer.VerifyBillingRun
			if v.Same {
				return t.Show(command.Line(v, fmt.Sprintf("%s: the same bytes, %s", v.Run.Id,
					v.Run.OutputDigest), v.Run.Id))
			}
			if err := t.Show(command.Fields(v, v.Run.Id, "Differs", v.Differs, "Recorded", v.Recorded, "Recomputed",
				v.Recomputed)); err != nil {
				return err
			}
			return errDiffers
		})
}

// whose holds the flags that choose a statement.
type whose struct{ tenant, period string }

func (w *whose) bind(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&w.tenant, "tenant", "", "of this whole tenant, by id, instead of the project's")
	cmd.Flags().StringVar(&w.period, "period", "", "of this period, by id (default the newest)")
	return cmd
}

// ids are the tenant, or the project of the run, and the period; nil for none.
func (w *whose) ids(ctx context.Context, t *command.Tool) (tenant, project, period *string, err error) {
	if w.period != "" {
		period = &w.period
	}
	if w.tenant != "" {
		return &w.tenant, nil, period, nil
	}
	id, err := t.ProjectID(ctx)
	return nil, &id, period, err
}

func statement(t *command.Tool) *cobra.Command {
	var of whose
	return of.bind(command.Verb(t, "statement", "Show what the project, or a tenant, owes", viewStatement,
		func(ctx context.Context, _ []string) (*gql.Statement, error) {
			tenant, project, period, err := of.ids(ctx, t)
			if err != nil {
				return nil, err
			}
			answer, err := gql.GetStatement(ctx, t, tenant, project, period)
			return &answer.Statement, err
		}))
}

// viewStatement shows the lines, and below them the sums.
func viewStatement(s *gql.Statement) command.View {
	table := command.Table[gql.StatementLine]{
		Heading: []string{"LINE", "METER", "SKU", "REGION", "QUANTITY", "BILLED", "UNIT", "AMOUNT", "NOTE"},
		Row: func(l *gql.StatementLine) []string {
			return []string{l.Key, l.Meter, l.Sku, l.Region, l.Quantity, l.Billed, l.Unit,
				amountOf(l, s.Period.Currency), noteOf(l)}
		},
		ID: func(l *gql.StatementLine) string { return l.Key },
		Below: func(p *render.Page, _ []gql.StatementLine) {
			p.Fields("Charges", s.Charges+" "+s.Period.Currency, "Credits", s.Credits+" "+s.Period.Currency,
				"Total", s.Total+" "+s.Period.Currency, "Period", string(s.Period.Status))
		},
	}
	return table.As(s, s.Lines)
}

func amountOf(l *gql.StatementLine, currency string) string {
	if l.Amount == nil {
		return "no price set"
	}
	return *l.Amount + " " + currency
}

func noteOf(l *gql.StatementLine) string {
	if l.Correction {
		return "correction of " + l.From.Format("2006-01")
	}
	return ""
}

var formats = map[string]gql.StatementFormat{"json": gql.StatementFormatJson, "csv": gql.StatementFormatCsv,
	"parquet": gql.StatementFormatParquet, "focus": gql.StatementFormatFocusCsv,
	"focus-json": gql.StatementFormatFocusJson}

// export returns the command that writes a statement to a file.
func export(t *command.Tool) *cobra.Command {
	var of whose
	var format, focus string
	cmd := of.bind(t.Command("export FILE", "Write a statement to a file, as JSON, CSV, Parquet or FOCUS",
		func(ctx context.Context, args []string) error {
			wanted, ok := formats[strings.ToLower(format)]
			if !ok {
				return command.Usage(fmt.Errorf("--format %s: must be json, csv, parquet, focus or focus-json", format))
			}
			tenant, project, period, err := of.ids(ctx, t)
			if err != nil {
				return err
			}
			answer, err := gql.ExportStatement(ctx, t, tenant, project, period, wanted, focus)
			if err != nil {
				return err
			}
			content := []byte(answer.ExportStatement.Body)
			if answer.ExportStatement.Base64 {
				if content, err = base64.StdEncoding.DecodeString(answer.ExportStatement.Body); err != nil {
					return fmt.Errorf("read the answer: %w", err)
				}
			}
			if err := os.WriteFile(args[0], content, 0o600); err != nil {
				return command.Usage(err)
			}
			return t.Show(command.Line(map[string]any{"file": args[0], "mediaType": answer.ExportStatement.MediaType},
				args[0]+": "+answer.ExportStatement.MediaType))
		}))
	cmd.Flags().StringVar(&format, "format", "csv", "json, csv, parquet, focus or focus-json")
	cmd.Flags().StringVar(&focus, "focus", "1.2", "version of FOCUS: 1.2 or 1.3")
	return cmd
}
