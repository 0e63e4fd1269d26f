package server

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestAllValuesInCustodyMoveToAnotherKeeperAndWhatCannotIsNamed(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	dir, ctx := t.TempDir(), t.Context()
	old, err := custody.Open(ctx, "", dir)
	require.NoError(t, err)
	next := "base64key://" + strings.Repeat("B", 43) + "="
	project := kit.Project(kit.Tenant())
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning)
	seal := func(text string) []byte {
		sealed, err := old.Seal(ctx, []byte(text), text)
		require.NoError(t, err)
		return sealed
	}
	var made []ids.ID
	for range rewrapBatch + 5 { // more than one batch
		id := ids.New(ids.RuntimeSecret)
		require.NoError(t, kit.Ent.RuntimeSecret.Create().SetID(id).SetTenantID(project.TenantID).
			SetProjectID(project.ID).SetInstanceID(instance.ID).
			SetPurpose("joining").SetAudience(lifecycle.SecretForAdapter).SetDelivery(lifecycle.DeliverOnce).
			SetKeeper("local").
			SetSealed(seal("now")).SetExpiresAt(time.Now().Add(time.Hour)).Exec(ctx))
		made = append(made, id)
	}
	kit.SQL(`UPDATE runtime_secret SET previous = $2 WHERE id = $1`, made[0], seal("before"))
	kit.SQL(`UPDATE runtime_secret SET sealed = NULL WHERE id = $1`, made[1])
	hook := ids.New(ids.Webhook)
	kit.SQL(`INSERT INTO webhook (id, tenant_id, project_id, url, event_types, families, secret, previous_secret,
		created_at, updated_at)
		VALUES ($1, $2, $3, 'https://hook.test', '[]', '[]', $4, $5, now(),
		now())`, hook, project.TenantID, project.ID, seal("hook"), seal("hook before"))
	origin := kit.Source(nil, lifecycle.SourceOCI, "registry.test")
	kit.SQL(`UPDATE artifact_source SET credential = $2, keeper = 'local' WHERE id = $1`, origin.ID, seal("source"))
	config := RewrapConfig{DatabaseURL: kit.DSN, KeysDir: dir, Keeper: next, Previous: []string{custody.Local}}
	var said bytes.Buffer
	require.NoError(t, Rewrap(ctx, config, &said))
	require.Contains(t, said.String(), "runtime_secret: 100 rows so far")
	require.Contains(t, said.String(), "105 values wrapped") // 104 values and one before a rotation
	require.Contains(t, said.String(), "webhook: 1 rows, 2 values wrapped")
	require.Contains(t, said.String(), "artifact_source: 1 rows, 1 values wrapped")

	alone, err := custody.Open(ctx, next, dir)
	require.NoError(t, err)
	require.Equal(t, rewrapBatch+4, kit.Count("runtime_secret", "keeper = $1", alone.Name()))
	require.Equal(t, 1, kit.Count("artifact_source", "keeper = $1", alone.Name()))
	for what, query := range map[string]string{
		"now":         `SELECT sealed FROM runtime_secret WHERE id = $1`,
		"before":      `SELECT previous FROM runtime_secret WHERE id = $1`,
		"hook":        `SELECT secret FROM webhook WHERE $1 <> ''`,
		"hook before": `SELECT previous_secret FROM webhook WHERE $1 <> ''`,
		"source":      `SELECT credential FROM artifact_source WHERE $1 <> ''`,
	} {
		var sealed []byte
		require.NoError(t, kit.Admin.QueryRow(ctx, query, made[0]).Scan(&sealed))
		value, err := alone.Open(ctx, sealed, what)
		require.NoError(t, err)
		require.Equal(t, what, string(value))
	}
	said.Reset()
	require.NoError(t, Rewrap(ctx, config, &said))
	require.Contains(t, said.String(), "0 values wrapped", "what is done is not done again")
	config.All = true
	require.NoError(t, Rewrap(ctx, config, &said))
	require.Contains(t, said.String(), "105 values wrapped")

	kit.SQL(`UPDATE runtime_secret SET sealed = '\x7b7d' WHERE id = $1`, made[2])
	said.Reset()
	require.ErrorContains(t, Rewrap(ctx, config, &said), "1 values could not be wrapped")
	require.Contains(t, said.String(), string(made[2]))
	require.Contains(t, said.String(), "104 values wrapped", "the others are")
	config.DatabaseURL = ""
	require.Error(t, Rewrap(ctx, config, &said))
}
