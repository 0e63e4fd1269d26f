package event_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/service/ledger/event"
)

// A worker of a build from before generations may be the first on another server. It asks nothing of the database
// first.
func TestABuildThatKnowsNoGenerationsWritesInThePresentOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.append(b.first, "before", nothing))
	// The feed's present end cannot be the start: while an older transaction runs, it lies before the event.
	_, start := b.whole(1)
	// as after a restore
	_, err := b.Admin.Exec(t.Context(), `UPDATE platform.generation_log SET system_identifier = 1`)
	require.NoError(t, err)
	b.tellAsOlder("evt_older", "by an older build")
	var generation int64
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT generation FROM app_instance_event
		WHERE id = 'evt_older'`).
		Scan(&generation))
	require.Greater(t, generation, start.Generation)
	b.awaitFeed(start, "by an older build")
}

// Events that an older build appends after a restore, and later events of the instance, have numbers of the present
// server. The event before has a number of another server, which may be far ahead.
func TestAnOlderBuildsEventsAreReadAfterARestore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.append(b.first, "before", nothing))
	_, start := b.whole(1)
	const ahead = 1 << 40
	_, err := b.Admin.Exec(t.Context(), `UPDATE app_instance_event SET xid = $2
		WHERE instance_id = $1`, b.first.ID, ahead)
	require.NoError(t, err)
	start.XID = ahead
	_, err = b.Admin.Exec(t.Context(), `UPDATE platform.generation_log SET system_identifier = 1`)
	require.NoError(t, err)
	b.tellAsOlder("evt_older_1", "by an older build")
	b.tellAsOlder("evt_older_2", "by it again")
	b.first.Revision += 2
	require.NoError(t, b.append(b.first, "by this one", nothing))
	b.awaitFeed(start, "by an older build", "by it again", "by this one")
}

// tellAsOlder appends to the first instance as builds from before generations do.
func (b *bundle) tellAsOlder(id, message string) {
	b.t.Helper()
	older, err := pgx.Connect(b.t.Context(), b.DSN)
	require.NoError(b.t, err)
	defer func() { _ = older.Close(context.Background()) }()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), older, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `UPDATE instance SET revision = revision + 1 WHERE id = $1`, b.first.ID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(b.t.Context(), `INSERT INTO app_instance_event (id, tenant_id, project_id, instance_id, seq,
			type,
			app_slug,
			permission_family, message, payload, correlation_id, occurred_at, xid) SELECT $2, tenant_id, project_id, instance_id,
			seq + 1, type, app_slug, permission_family, $3, payload, correlation_id, now(),
			GREATEST(pg_current_xact_id()::text::bigint, (SELECT e.xid FROM app_instance_event e
				WHERE e.instance_id = last.instance_id AND e.seq = last.seq))
			FROM app_instance_event last WHERE instance_id = $1 ORDER BY seq DESC LIMIT 1`, b.first.ID, id, message)
		return err
	}))
}

// awaitFeed waits until the feed after a position is these messages: until no transaction of anybody on this server
// holds it back.
func (b *bundle) awaitFeed(start event.Position, messages ...string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		read, _ := b.feed(start)
		return slices.Equal(read, messages)
	}, patience, tick)
}
