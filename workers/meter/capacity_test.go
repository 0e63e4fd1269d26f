package meter_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/workers/meter"
)

// bench is a platform with a project, and nodes whose agents beat when the test calls beat.
type bench struct {
	*platformtest.Kit
	testing.TB
	project *db.Project
	node    *db.ComputeNode
	stats   meter.Stats
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{Kit: platformtest.New(t), TB: t}
	b.project = b.Kit.Project(b.Tenant())
	b.node, _ = b.Node(4)
	return b
}

// meter is one of several that record.
func (b *bench) meter() *meter.Meter {
	client := adapterclient.New(b.Ring, dial.Loopback())
	b.Cleanup(client.Close)
	return meter.New(meter.Config{DB: b.DB, Client: client, Keys: b.Ring,
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Stats: &b.stats})
}

// beat is a heartbeat of the node's agent at a time, by a boot of its machine.
func (b *bench) beat(ago time.Duration, boot string) {
	b.SQL(`UPDATE compute_node SET last_seen_at = now() - $2 * interval '1 second', boot_id = $3
		WHERE id = $1`, b.node.ID,
		ago.Seconds(), boot)
}

// allDue has every source read at the next turn. Several ask at once, so that rows are locked in one order: else two of
// them may wait for each other.
func (b *bench) allDue() {
	b.SQL(`UPDATE usage_source SET due_at = now() WHERE source IN (SELECT source FROM usage_source ORDER BY source
		FOR UPDATE)`)
}

// rent is an allocation that became ready so long ago.
func (b *bench) rent(ago time.Duration) *db.Allocation {
	made := b.Allocation(b.project, b.node)
	b.asIf(made.ID, ago)
	return made
}

// asIf moves the newest fact of an allocation into the past.
func (b *bench) asIf(allocation ids.ID, ago time.Duration) {
	b.SQL(`ALTER TABLE allocation_fact DISABLE TRIGGER append_only`)
	b.SQL(`UPDATE allocation_fact SET at = now() - $2 * interval '1 second' WHERE allocation_id = $1
		AND seq = (SELECT max(seq) FROM allocation_fact WHERE allocation_id = $1)`, allocation, ago.Seconds())
	b.SQL(`UPDATE allocation SET created_at = now() - $2 * interval '1 second'
		WHERE id = $1`, allocation, ago.Seconds())
	b.SQL(`ALTER TABLE allocation_fact ENABLE TRIGGER append_only`)
	b.SQL(`UPDATE usage_source SET due_at = now() WHERE source = $1`, allocation)
}

// recorded are the sums of an allocation's records by who bears them, and their number.
func (b *bench) recorded(allocation ids.ID) (sums map[string]int, number int) {
	sums = make(map[string]int)
	found, err := b.Admin.Query(context.Background(), `SELECT borne_by || coalesce(' ' || borne_reason, ''),
		sum(quantity)::bigint, count(*)
		FROM usage_record WHERE source = $1 GROUP BY 1`, allocation)
	require.NoError(b.TB, err)
	var by string
	var sum, count int
	_, err = pgx.ForEachRow(found, []any{&by, &sum, &count},
		func() error { sums[by], number = sum, number+count; return nil })
	require.NoError(b.TB, err)
	return sums, number
}

// An allocation is metered from its agent's proof to its release, once, by however many processes.
func TestAnAllocationIsRecordedOnceByAnyNumberOfProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.beat(10*time.Minute+5*time.Second, "boot")
	for at := 600; at >= 0; at -= 10 {
		b.beat(time.Duration(at)*time.Second, "boot")
	}
	rented := b.rent(9 * time.Minute)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3 {
				if err := b.meter().Capacity(t.Context()); err != nil {
					t.Error(err)
				}
				b.allDue()
			}
		})
	}
	all.Wait()
	sums, number := b.recorded(rented.ID)
	require.Len(t, sums, 1)
	require.InDelta(t, 9*60-30, sums["TENANT"], 31, "up to the last whole minute")
	require.InDelta(t, 9, number, 1)
	require.EqualValues(t, number, b.stats.Capacity.Load())
	require.Zero(t, b.Count("usage_record", "from_at >= to_at OR to_at > now()"))

	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, rented.ID)
	b.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now() WHERE id = $1`, rented.ID)
	b.beat(-2*time.Second, "boot")
	require.NoError(t, b.meter().Capacity(t.Context()))
	require.Equal(t, 1, b.Count("usage_source", "source = $1 AND ended_at IS NOT NULL", rented.ID))
	sums, _ = b.recorded(rented.ID)
	require.InDelta(t, 9*60, sums["TENANT"], 3, "from first to last")
	require.Equal(t, 1, b.Count("usage_record",
		"source = $1 AND NOT EXISTS (SELECT FROM usage_record n WHERE n.source = usage_record.source AND n.from_at = "+
			"usage_record.to_at)", rented.ID),
		"each second once: every record but the last has one that follows")
}

func TestWhatNoAgentProvesIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rented := b.rent(30 * time.Minute)
	require.NoError(t, b.meter().Capacity(t.Context()))
	require.Zero(t, b.Count("usage_record", "true"), "no agent has ever been heard of")
	b.beat(20*time.Minute, "boot")
	b.SQL(`UPDATE compute_node SET last_seen_at = now()`)
	b.allDue()
	require.NoError(t, b.meter().Capacity(t.Context()))
	require.Zero(t, b.Count("usage_record", "true"), "what the platform writes of a node proves nothing")
	b.beat(0, "other")
	b.allDue()
	require.NoError(t, b.meter().Capacity(t.Context()))
	sums, _ := b.recorded(rented.ID)
	require.NotContains(t, sums, "TENANT", "the machine was another's boot meanwhile")
	require.InDelta(t, 20*60-30, sums["PLATFORM NODE_REBOOTED"], 31)
}

func TestAFailedAddIsThePlatforms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for at := 600; at >= 0; at -= 10 {
		b.beat(time.Duration(at)*time.Second, "boot")
	}
	_, stored := b.Launchable(b.project, "apps")
	instance := b.Instance(b.project, stored, lifecycle.InstanceRunning)
	op := b.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationRunning)
	rented := b.rent(5 * time.Minute)
	b.SQL(`UPDATE allocation SET created_by_operation_id = $2 WHERE id = $1`, rented.ID, op.ID)
	require.NoError(t, b.meter().Capacity(t.Context()))
	require.Zero(t, b.Count("usage_record", "source = $1", rented.ID), "who bears it is not known")
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE id = $1`, op.ID)
	b.allDue()
	require.NoError(t, b.meter().Capacity(t.Context()))
	sums, _ := b.recorded(rented.ID)
	require.Len(t, sums, 1)
	require.Positive(t, sums["PLATFORM FAILED_ADD"])
	require.Zero(t, b.Count("usage_record", "borne_by = 'PLATFORM' AND borne_owner IS NULL"))
}

// Facts are append only; a change of them in the database all the same stops that one allocation alone.
func TestAnAllocationWhoseFactsChangedHoldsNoOtherBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for at := 600; at >= 0; at -= 10 {
		b.beat(time.Duration(at)*time.Second, "boot")
	}
	changed := b.rent(5 * time.Minute)
	require.NoError(t, b.meter().Capacity(t.Context()))
	_, before := b.recorded(changed.ID)
	require.Positive(t, before)
	b.SQL(`ALTER TABLE allocation_fact DISABLE TRIGGER append_only`)
	b.SQL(`UPDATE allocation_fact SET sku = 'another' WHERE allocation_id = $1`, changed.ID)
	b.SQL(`UPDATE usage_source SET recorded_to = NULL, due_at = now() WHERE source = $1`, changed.ID)
	sound := b.rent(5 * time.Minute)
	require.NoError(t, b.meter().Capacity(t.Context()))
	_, number := b.recorded(sound.ID)
	require.Positive(t, number)
	_, after := b.recorded(changed.ID)
	require.Equal(t, before, after)
	require.Equal(t, 1, b.Count("usage_source", `source = $1 AND failures = 1 AND last_error LIKE '%its facts have changed%'
		AND recorded_to IS NULL AND due_at > now() + interval '1 minute'`, changed.ID))
}

// No role of the application changes what is recorded, and neither does the tables' owner.
func TestRecordsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for at := 600; at >= 0; at -= 10 {
		b.beat(time.Duration(at)*time.Second, "boot")
	}
	b.rent(5 * time.Minute)
	require.NoError(t, b.meter().Capacity(t.Context()))
	for _, statement := range []string{"UPDATE usage_record SET quantity = 0", "DELETE FROM usage_record",
		"TRUNCATE usage_record",
		"DELETE FROM usage_record_0", "UPDATE allocation_fact SET at = now()", "DELETE FROM node_gap",
		"DELETE FROM usage_quarantine"} {
		_, err := b.Admin.Exec(t.Context(), statement)
		require.ErrorContains(t, err, "append only", statement)
		_, err = b.DB.Worker().Exec(t.Context(), statement)
		require.ErrorContains(t, err, "permission denied", statement)
	}
	require.Positive(t, b.Count("usage_record", "true"))
	for _, role := range []string{"app_api", "app_operator", "app_worker", "app_node"} {
		for _, right := range []string{"UPDATE", "DELETE", "TRUNCATE"} {
			var may bool
			require.NoError(t, b.Admin.QueryRow(t.Context(), fmt.Sprintf(
				`SELECT bool_or(has_table_privilege('%s', c.oid, '%s')) FROM pg_class c WHERE relname LIKE 'usage_record%%'
					AND relkind IN ('r', 'p')`, role, right)).Scan(&may))
			require.False(t, may, "%s %s", role, right)
		}
	}
}
