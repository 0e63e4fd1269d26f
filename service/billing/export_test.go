package billing_test

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/focus"
)

// mandatory are the columns that FOCUS 1.2 demands of every dataset.
var mandatory = strings.Fields(`BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart ChargeCategory
	ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit
	ProviderName PublisherName ServiceCategory ServiceName`)

// conforms holds a cell to its column's rules.
func conforms(t *testing.T, column *focus.Column, cell string) {
	t.Helper()
	if cell == "" {
		require.True(t, column.Null, "%s must not be null", column.Name)
		return
	}
	switch column.Kind {
	case "string":
		require.NotEqual(t, strings.TrimSpace(cell), "", column.Name)
	case "decimal":
		require.Regexp(t, regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`), cell, column.Name)
	case "time":
		at, err := time.Parse("2006-01-02T15:04:05Z", cell)
		require.NoError(t, err, column.Name)
		require.Equal(t, time.UTC, at.Location())
	case "currency":
		_, err := money.Minor(cell)
		require.NoError(t, err, column.Name)
	case "enum":
		require.Contains(t, column.Values, cell, column.Name)
	default:
		t.Fatalf("%s has no kind", column.Name)
	}
}

func TestFocusKeepsTheRulesOfTheSpecification(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	b.use("alc_1", "mem_1", "", 7200, 3600)
	b.step(b.past)
	columns := map[string]*focus.Column{}
	for i := range focus.Columns {
		columns[focus.Columns[i].Name] = &focus.Columns[i]
	}
	for _, period := range []ids.ID{b.past, b.present} {
		for version, named := range map[string]bool{"1.2": false, "1.3": true} {
			export, err := b.service.Export(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &period}, billing.FocusCSV, version)
			require.NoError(t, err)
			rows, err := csv.NewReader(strings.NewReader(export.Body)).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 2)
			require.Subset(t, rows[0], mandatory)
			require.Equal(t, named, slices.Contains(rows[0], "ServiceProviderName"))
			require.True(t, slices.IsSorted(rows[0]))
			for i, cell := range rows[1] {
				conforms(t, columns[rows[0][i]], cell)
			}
			class := rows[1][slices.Index(rows[0], "ChargeClass")]
			require.Equal(t, period == b.present, class == "Correction")
			require.Equal(t, "2.00", rows[1][slices.Index(rows[0], "BilledCost")])
		}
	}
	_, err := b.service.Export(b.admin, billing.Filter{ProjectID: &b.project.ID}, billing.FocusCSV, "9")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
	_, err = b.service.Export(b.admin, billing.Filter{ProjectID: &b.project.ID}, "PDF", "1.2")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
	_, err = b.service.Export(b.admin, billing.Filter{}, billing.CSV, "1.2")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
}

func TestAStatementIsExportedAsJSONAndCSV(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 1800)
	b.step(b.past)
	of := billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past}
	export, err := b.service.Export(b.admin, of, billing.JSON, "1.2")
	require.NoError(t, err)
	var document struct {
		Total, Currency string
		Lines           []struct{ Amount, Currency string }
	}
	require.NoError(t, json.Unmarshal([]byte(export.Body), &document))
	require.Equal(t, []string{"1.00", "EUR", "1.00"}, []string{document.Total, document.Currency, document.Lines[0].Amount})
	export, err = b.service.Export(b.admin, of, billing.CSV, "1.2")
	require.NoError(t, err)
	require.Equal(t, "statement-2026-09.csv", export.FileName)
	require.Regexp(t, `(?m)^key,project_id,.*\n[0-9a-f]{32},prj_.*,3600,1800,EUR,1\.00$`, export.Body)
	export, err = b.service.Export(b.admin, of, billing.FocusJSON, "1.3")
	require.NoError(t, err)
	var line map[string]*string
	require.NoError(t, json.Unmarshal([]byte(export.Body), &line))
	require.Nil(t, line["ChargeClass"])
	require.Equal(t, "1.00", *line["BilledCost"])
}
