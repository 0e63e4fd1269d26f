package event_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A worker of a build from before generations may be the first on another server. It asks nothing of the database first.
func TestABuildThatKnowsNoGenerationsWritesInThePresentOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.append(b.first, "before", nothing))
	_, start := b.whole(1)                                                                          // and not the present end, which lies before it while somebody's older transaction runs
	_, err := b.Admin.Exec(t.Context(), `UPDATE platform.generation_log SET system_identifier = 1`) // as after a restore
	require.NoError(t, err)
	older, err := pgx.Connect(t.Context(), b.DSN)
	require.NoError(t, err)
	t.Cleanup(func() { _ = older.Close(context.Background()) })
	require.NoError(t, pgx.BeginFunc(t.Context(), older, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE instance SET revision = revision + 1 WHERE id = $1`, b.first.ID); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq, type, app_slug,
			permission_family, message, payload, correlation_id, occurred_at, xid) SELECT 'evt_older', tenant_id, project_id, instance_id,
			seq + 1, type, app_slug, permission_family, 'by an older build', payload, correlation_id, now(),
			GREATEST(pg_current_xact_id()::text::bigint, (SELECT e.xid FROM app_instance_event e
				WHERE e.instance_id = last.instance_id AND e.seq = last.seq AND e.generation = platform.generation()))
			FROM app_instance_event last WHERE instance_id = $1 ORDER BY seq DESC LIMIT 1`, b.first.ID)
		return err
	}))
	var generation int64
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT generation FROM app_instance_event WHERE id = 'evt_older'`).
		Scan(&generation))
	require.Greater(t, generation, start.Generation)
	require.Eventually(t, func() bool { // until no transaction of anybody on this server holds the feed back
		read, _ := b.feed(start)
		return len(read) == 1 && read[0] == "by an older build"
	}, patience, tick)
}
