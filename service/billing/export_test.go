package billing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/export"
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
			file, err := export.Statement(b.admin, b.service, billing.Filter{ProjectID: &b.project.ID,
				PeriodID: &period},
				rating.FocusCSV, version)
			require.NoError(t, err)
			rows, err := csv.NewReader(strings.NewReader(file.Body)).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 2)
			require.Subset(t, rows[0], mandatory)
			require.Equal(t, named, slices.Contains(rows[0], "ServiceProviderName"))
			require.True(t, slices.IsSorted(rows[0]))
			for i, cell := range rows[1] {
				conforms(t, columns[rows[0][i]], cell)
			}
			cell := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
			require.Equal(t, period == b.present, cell("ChargeClass") == "Correction")
			require.Equal(t, "2.00", cell("BilledCost"))
			require.Equal(t, []string{b.tenant.DisplayName, b.project.DisplayName},
				[]string{cell("BillingAccountName"), cell("SubAccountName")},
				"accounts that have a name are called by it")
		}
	}
	_, err := export.Statement(b.admin, b.service, billing.Filter{ProjectID: &b.project.ID}, rating.FocusCSV, "9")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
	_, err = export.Statement(b.admin, b.service, billing.Filter{ProjectID: &b.project.ID}, "PDF", "1.2")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
	_, err = export.Statement(b.admin, b.service, billing.Filter{}, rating.CSV, "1.2")
	require.Equal(t, fault.InvalidArgument, fault.From(err).Code)
}

func TestAStatementIsExportedAsJSONAndCSV(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 1800)
	b.step(b.past)
	of := billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past}
	file, err := export.Statement(b.admin, b.service, of, rating.JSON, "1.2")
	require.NoError(t, err)
	var document struct {
		Total, Currency string
		Lines           []struct{ Amount, Currency string }
	}
	require.NoError(t, json.Unmarshal([]byte(file.Body), &document))
	require.Equal(t, []string{"1.00", "EUR", "1.00"}, []string{document.Total, document.Currency,
		document.Lines[0].Amount})
	file, err = export.Statement(b.admin, b.service, of, rating.CSV, "1.2")
	require.NoError(t, err)
	require.Equal(t, "statement-2026-09.csv", file.FileName)
	require.Regexp(t, `(?m)^key,project_id,.*\n[0-9a-f]{32},prj_.*,3600,1800,EUR,1\.00$`, file.Body)
	file, err = export.Statement(b.admin, b.service, of, rating.FocusJSON, "1.3")
	require.NoError(t, err)
	var line map[string]*string
	require.NoError(t, json.Unmarshal([]byte(file.Body), &line))
	require.Nil(t, line["ChargeClass"])
	require.Equal(t, "1.00", *line["BilledCost"])
}

func TestAStatementIsExportedAsParquetWithExactDecimals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	b.step(b.past)
	b.tamper(`UPDATE usage_record SET sku = 'free', quantity = quantity / 3`)
	b.step(b.past) // nothing of the price is left, and what there is has none
	file, err := export.Statement(b.admin, b.service, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past},
		rating.Parquet, "1.2")
	require.NoError(t, err)
	require.True(t, file.Base64)
	require.Equal(t, "statement-2026-09.parquet", file.FileName)
	content, err := base64.StdEncoding.DecodeString(file.Body)
	require.NoError(t, err)
	read, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	var found []map[string]parquet.Value
	for _, group := range read.RowGroups() {
		rows, page := group.Rows(), make([]parquet.Row, 8)
		count, err := rows.ReadRows(page)
		require.True(t, err == nil || err == io.EOF, "%v", err)
		for _, row := range page[:count] {
			cells := map[string]parquet.Value{}
			for i, path := range read.Schema().Columns() {
				cells[path[0]] = row[i].Clone()
			}
			found = append(found, cells)
		}
		require.NoError(t, rows.Close())
	}
	statement, err := b.service.Statement(b.admin, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Len(t, found, len(statement.Lines))
	for i, line := range statement.Lines {
		require.Equal(t, line.Key, found[i]["key"].String())
		require.Equal(t, line.From.UnixMicro(), found[i]["from"].Int64())
		require.Equal(t, line.Quantity.Fixed(12), number(found[i]["quantity"]))
		require.Equal(t, line.Amount == nil, found[i]["amount"].IsNull(), "no price is not zero")
		if line.Amount != nil {
			require.Equal(t, line.Amount.Fixed(12), number(found[i]["amount"]))
		}
	}
	lines, err := export.Statement(b.admin, b.service, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past},
		rating.CSV, "1.2")
	require.NoError(t, err)
	require.False(t, lines.Base64)
	require.Len(t, read.Schema().Columns(), strings.Count(strings.SplitN(lines.Body, "\n", 2)[0], ",")+1,
		"the columns of the CSV form")
}

// number reads a decimal(38,12).
func number(of parquet.Value) string {
	n := new(big.Int).SetBytes(of.ByteArray())
	if n.Bit(127) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(12), nil)).FloatString(12)
}
