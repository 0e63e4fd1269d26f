package platformtest

import (
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
)

// ListPrice sets what an hour of a SKU costs everyone from now on, in the price book.
func (k *Kit) ListPrice(sku, currency, hourly string) {
	k.t.Helper()
	terms := fmt.Sprintf(`{"measure":"TIME","per":"3600","tiers":[{"price":"%s"}],"minimum":"0","roundUpTo":"0"}`,
		money.Must(hourly))
	k.SQL(`UPDATE price_version SET superseded_xid = pg_current_xact_id() WHERE sku = $1 AND currency = $2
		AND superseded_xid IS NULL`, sku, currency)
	id := ids.New(ids.PriceVersion)
	k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ($1, $1, 'capacity', $2, '', $3, 'PLATFORM', now() - interval '1 day', 1, $4, '', 'a test',
		'')`, id, sku, currency, terms)
}
