package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) canaryCommand() *cobra.Command {
	return group("canary", "Versions in a small roll-out", t.canaryReport(), t.canaryPercent())
}

func (t *tool) canaryReport() *cobra.Command {
	return t.command("report MANIFEST", "Show how the canary of a version, by its id or APP@VERSION, goes against the active one", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := manifestID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.GetCanaryReport(ctx, c, id)
			if err != nil {
				return err
			}
			report := answer.CanaryReport
			return t.show(view{JSON: report, IDs: []string{string(report.Verdict)}, Page: func(p *render.Page) { pageCanary(p, report) }})
		})
}

func pageCanary(p *render.Page, report gql.CanaryReport) {
	halted := ""
	if report.HaltedAt != nil {
		halted = fmt.Sprintf("%s: %s", render.Time(report.HaltedAt), report.HaltReason)
	}
	evidence := 0.0
	if n := len(report.Points); n > 0 {
		evidence = report.Points[n-1].Evidence
	}
	p.Fields("Verdict", string(report.Verdict), "Percent", strconv.Itoa(report.Percent), "Since", render.Time(report.StartedAt), "Halted", halted,
		"Evidence", fmt.Sprintf("%.2f, halts at %.2f", evidence, report.Threshold))
	rows := [][]string{armRow("canary", report.Canary)}
	if report.Active != nil {
		rows = append(rows, armRow("active", *report.Active))
	}
	p.Section("Launches")
	p.Table([]string{"ARM", "VERSION", "ENDED", "FAILED", "PENDING", "RATE", "OTHER", "OTHER FAILED", "RUNNING P50", "RUNNING P90"}, rows)
}

func armRow(name string, arm gql.CanaryArm) []string {
	return []string{name, arm.Manifest.Version, strconv.Itoa(arm.Launches), strconv.Itoa(arm.Failed), strconv.Itoa(arm.Pending),
		number(arm.FailureRate, "%.3f"), strconv.Itoa(arm.Operations), strconv.Itoa(arm.OperationsFailed),
		number(arm.TimeToRunningP50, "%.1fs"), number(arm.TimeToRunningP90, "%.1fs")}
}

// number is a number that there may not be yet.
func number(value *float64, format string) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf(format, *value)
}

func (t *tool) canaryPercent() *cobra.Command {
	var reason string
	percent := t.command("percent MANIFEST PERCENT", "Change how many of the projects a canary takes in, 1 to 100", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			share, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("percent %q: must be a whole number, 1 to 100", args[1])
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, err := manifestID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.SetCanaryPercent(ctx, c, id, share, reason)
			if err != nil {
				return err
			}
			return t.showManifest(answer.SetCanaryPercent)
		})
	neededReason(percent, &reason)
	return percent
}
