package billing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/billing/export"
	"github.com/gpuaas/app-platform/service/billing/why"
)

// gibHours is the terms of a price of a GiB for an hour.
func gibHours(price string) string {
	return `{"measure":"QUANTITY","per":"3600","tiers":[{"price":"` + price + `"}],"minimum":"0","roundUpTo":"0"}`
}

// keep writes a record of a volume of so many GiB for some time of the past month.
func (b *books) keep(volume ids.ID, class string, gib int, after, length time.Duration) {
	b.t.Helper()
	from := b.start.Add(after)
	b.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, sku, session, unit,
		quantity,
			from_at, to_at, digest)
		VALUES ($1, 'volume_gib_seconds', $2, 'STORAGE', $3, $4, $5, $1, 'GiB-second', $6, $7, $8, '')`, volume,
		from.Format(time.RFC3339), b.tenant.ID, b.project.ID, class, gib*int(length/time.Second),
		from, from.Add(length))
}

func TestVolumesAreOnTheStatementByStorageClass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	home, data, other := ids.New(ids.Volume), ids.New(ids.Volume), ids.New(ids.Volume)
	price := b.price("volume_gib_seconds", "parallel", gibHours("0.01"))
	b.price("capacity", "", hourly("99")) // for whatever is rented, which a volume is not
	b.keep(home, "parallel", 100, 0, time.Hour)
	b.keep(data, "parallel", 300, 0, 2*time.Hour)
	b.keep(home, "parallel", 150, time.Hour, time.Hour) // it has grown
	b.keep(other, "disk", 10, 0, time.Hour)
	b.step(b.past)

	statement, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Len(t, statement.Lines, 2)
	require.Equal(t, 1, statement.Unpriced, "the class disk has no price, which is not zero")
	require.Equal(t, "8.5", statement.Charges.String())
	var key string
	for _, line := range statement.Lines {
		if line.SKU == "parallel" {
			key = line.Key
			require.Equal(t, []string{"volume_gib_seconds", "GiB-second", "3060000"},
				[]string{line.Meter, line.Unit, line.Quantity.String()})
		}
	}
	e, err := why.Line(b.admin, b.DB, why.Question{ProjectID: b.project.ID, PeriodID: b.past, Key: key, Records: 10})
	require.NoError(t, err)
	require.Equal(t, price, string(*e.PriceID))
	require.Equal(t, 3, e.RecordCount)
	require.Len(t, e.Shares, 2)
	require.Equal(t, []any{data, "6", home, "2.5"}, []any{*e.Shares[0].VolumeID, e.Shares[0].Amount.String(),
		*e.Shares[1].VolumeID, e.Shares[1].Amount.String()})
	require.Equal(t, "2.5", b.text(`SELECT trim_scale(sum(amount))::text FROM ledger_entry WHERE account = 'ACCRUED'
		AND volume_id = $1`, home))

	file, err := export.Statement(b.admin, b.service, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past},
		rating.FocusCSV, "1.2")
	require.NoError(t, err)
	require.Contains(t, file.Body, ",Storage,volume_gib_seconds,parallel,volume_gib_seconds,")

	b.keep(home, "parallel", 150, 2*time.Hour, time.Hour)
	b.step(b.past)
	require.Equal(t, "4", b.text(`SELECT trim_scale(sum(amount))::text FROM ledger_entry WHERE account = 'ACCRUED'
		AND volume_id = $1`, home), "the second run books what is new")
	verified, err := b.service.Verify(b.admin, ids.ID(b.text(`SELECT id FROM billing_run ORDER BY seq DESC LIMIT 1`)))
	require.NoError(t, err)
	require.True(t, verified.Same)
}

func TestAPeriodWaitsForTheRecordsOfVolumes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id, recorded_to)
		VALUES ('vol_1', 'STORAGE', $1, $2, $3)`, b.tenant.ID, b.project.ID, b.start.AddDate(0, 1, 0).Add(-time.Minute))
	b.price("volume_gib_seconds", "", gibHours("0.01"))
	b.keep("vol_1", "parallel", 100, 0, time.Hour)
	b.step(b.past)
	require.Equal(t, 1, b.Count("billing_period", "id = $1 AND status = 'CLOSING'", b.past))
	b.SQL(`UPDATE usage_source SET recorded_to = $1`, b.start.AddDate(0, 1, 0))
	b.step(b.past)
	require.Equal(t, 1, b.Count("billing_period", "id = $1 AND status = 'CLOSED'", b.past))
}
