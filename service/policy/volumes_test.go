package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

func TestAPreviewSaysWhichVolumesARuleWouldDeny(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := make(map[string]ids.ID)
	for _, class := range []string{"disk", "parallel"} {
		id := ids.New(ids.StorageClass)
		b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
			VALUES ($1, $2, 'SHARED', $2, now(), now())`, id, class)
		made[class] = ids.New(ids.Volume)
		b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
			created_at,
			updated_at) VALUES ($1, $2, $3, $4, $5, 100, 'READY', '', now(),
			now())`, made[class], b.tenant.ID, b.project.ID, id,
			"on-"+class)
	}
	b.SQL(`INSERT INTO volume SELECT (jsonb_populate_record(v, '{"id": "vol_gone", "name": "gone", "status": "DELETED",
		"deleted_at": "2026-01-01T00:00:00Z"}')).* FROM volume v WHERE id = $1`, made["disk"])
	b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason,
		created_by) VALUES ('prc_1', 'prc_1', 'volume_gib_seconds', 'parallel', '', 'EUR', 'PLATFORM', now() - interval '1 day',
		1, '{"measure":"QUANTITY","per":"3600","tiers":[{"price":"0.01"}],"minimum":"0","roundUpTo":"0"}', '', 'test',
		'')`)
	before := b.written()
	denied := func(document string) (lines []string) {
		t.Helper()
		found, err := b.service.Preview(b.admin, b.ofTenant(document))
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		for _, one := range found.NewlyDenied {
			id := ""
			if one.ObjectID != nil {
				id = string(*one.ObjectID) + " "
			}
			lines = append(lines, id+one.Name+" "+string(one.Reasons[0].Code))
		}
		return lines
	}
	require.Equal(t, []string{string(made["disk"]) + " on-disk STORAGE_CLASS_DENIED"},
		denied(`{"storageClasses": {"allow": ["parallel"]}}`))
	require.Empty(t, denied(`{"maxVolumeGiB": 200}`), "what is deleted does not count")
	require.Equal(t, []string{"all that the project has VOLUMES_CEILING"}, denied(`{"maxVolumeGiB": 199}`))
	require.Empty(t, denied(`{"maxHourlyCost": {"amountMicros": 1000000, "currency": "EUR"}}`),
		"a class without a price is in no sum")
	require.Equal(t, []string{"all that the project has SPENDING_CEILING"},
		denied(`{"maxHourlyCost": {"amountMicros": 999999, "currency": "EUR"}}`))
	require.Equal(t, before, b.written())
}
