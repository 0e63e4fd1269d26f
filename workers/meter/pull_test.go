package meter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// reporter is an adapter that has only usage: pages of two records behind a cursor that counts them.
type reporter struct {
	mu      sync.Mutex
	records []json.RawMessage
	status  int
	reads   []string // the cursors that it was read with
}

// ServeHTTP implements http.Handler.
func (r *reporter) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := request.URL.Query().Get("after")
	r.reads = append(r.reads, after)
	w.Header().Set("Content-Type", "application/json")
	if r.status != 0 {
		w.WriteHeader(r.status)
		_, _ = w.Write([]byte(`{"code": "NOT_NOW", "message": "it has no time"}`))
		return
	}
	from, _ := strconv.Atoi(after)
	to := min(from+2, len(r.records))
	_ = json.NewEncoder(w).Encode(map[string]any{"cursor": strconv.Itoa(to),
		"records": append([]json.RawMessage{}, r.records[from:to]...)})
}

// add is more usage.
func (r *reporter) add(records ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range records {
		r.records = append(r.records, json.RawMessage(one))
	}
}

// metered is a bench with an instance whose app has the dimensions jobs and tokens, and pods as showback.
func metered(t *testing.T) (*bench, *reporter, *db.Instance) {
	t.Helper()
	b, r := newBench(t), &reporter{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	app := b.App("apps")
	document := platformtest.Document(app, "1.0.0", b.Adapter(server.URL, nil), b.Artifact(lifecycle.StageActive))
	document["usageDimensions"] = []map[string]any{{"name": "jobs", "unit": "job"}, {"name": "tokens", "unit": "token"},
		{"name": "pods", "unit": "gpu-second", "kind": "showback"}}
	instance := b.Instance(b.project, b.Manifest(lifecycle.StageActive, document), lifecycle.InstanceRunning)
	b.SQL(`UPDATE instance SET created_at = '2026-01-01T00:00:00Z'`)
	return b, r, instance
}

// record is one of a dimension, in the first hour of a day long ago.
func record(id, dimension, quantity string, more ...string) string {
	rest := ""
	for i := 0; i < len(more); i += 2 {
		rest += fmt.Sprintf(`, %q: %q`, more[i], more[i+1])
	}
	return fmt.Sprintf(
		`{"id": %q, "dimension": %q, "quantity": %q, "from": "2026-02-01T00:00:00Z", "to": "2026-02-01T01:00:00Z"%s}`,
		id, dimension, quantity, rest)
}

// look finds sources and reads what is due.
func (b *bench) look() {
	b.Helper()
	b.SQL(`UPDATE usage_source SET due_at = now() WHERE ended_at IS NULL`)
	m := b.meter()
	require.NoError(b.TB, m.Find(b.TB.Context()))
	require.NoError(b.TB, m.Pull(b.TB.Context()))
}

// sums are the stored sums by meter.
func (b *bench) sums() map[string]string {
	out := make(map[string]string)
	found, err := b.Admin.Query(b.TB.Context(), `SELECT meter, trim_scale(sum(quantity))::text FROM usage_record
		WHERE basis <> 'CAPACITY' GROUP BY 1`)
	require.NoError(b.TB, err)
	var meter, sum string
	_, err = pgx.ForEachRow(found, []any{&meter, &sum}, func() error { out[meter] = sum; return nil })
	require.NoError(b.TB, err)
	return out
}

func TestUsageOfAnAppIsReadBehindADurableCursor(t *testing.T) {
	t.Parallel()
	b, r, instance := metered(t)
	for n := range 5 {
		r.add(record(fmt.Sprintf("j%d", n), "jobs", "1.5", "session", "job-1"))
	}
	b.look()
	require.Equal(t, map[string]string{"jobs": "7.5"}, b.sums())
	require.Equal(t, []string{"", "2", "4", "5"}, r.reads)
	require.Equal(t, 1, b.Count("usage_source",
		"source = $1 AND cursor = '5' AND recorded_to IS NOT NULL AND due_at > now()", instance.ID))
	require.Equal(t, 5, b.Count("usage_record",
		"app_instance_id = $1 AND session = 'job-1' AND unit = 'job' AND basis = 'APP'", instance.ID))
	r.add(record("p", "pods", "100"))
	b.look()
	require.Equal(t, 1, b.Count("usage_record", "meter = 'pods' AND basis = 'SHOWBACK'"))
	require.Equal(t, "5", r.reads[4], "it goes on where it was, in another process too")

	b.SQL(`UPDATE usage_source SET cursor = ''`) // a cursor from before
	b.look()
	require.Equal(t, 6, b.Count("usage_record", "true"), "what is recorded is not recorded again")
	require.Zero(t, b.Count("usage_quarantine", "true"))

	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, instance.ID)
	b.look()
	require.Equal(t, 1, b.Count("usage_source", "source = $1 AND ended_at IS NOT NULL", instance.ID))
}

func TestOneBadRecordStopsNothing(t *testing.T) {
	t.Parallel()
	b, r, instance := metered(t)
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	r.add(record("ok1", "jobs", "1"), record("u", "gpus", "1"), record("n", "jobs", "-1"), record("d", "jobs", "1e3"),
		`{"id": "f", "dimension": "jobs", "quantity": "1", "from": "2026-02-01T00:00:00Z", "to": "`+future+`"}`,
		`{"id": "b", "dimension": "jobs", "quantity": "1", "from": "2025-02-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}`,
		`{"id": "t", "dimension": "jobs", "quantity": 5, "from": "yesterday"}`,
		strings.Replace(record("nul", "jobs", "1"), "nul", `nul\u0000`, 1), `17`,
		record("m", "jobs", "1", "memberId", "mem_unknown"), record("ok1", "jobs", "2"), record("ok2", "tokens",
			"0.000000000001"))
	b.look()
	require.Equal(t, map[string]string{"jobs": "1", "tokens": "0.000000000001"}, b.sums())
	found, err := b.Admin.Query(t.Context(), `SELECT usage_id || ' ' || code || ' ' || field FROM usage_quarantine
		WHERE source = $1`, instance.ID)
	require.NoError(t, err)
	got, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"u DIMENSION_UNKNOWN dimension", "n USAGE_QUANTITY quantity",
		"d USAGE_QUANTITY quantity",
		"f USAGE_IN_FUTURE to", "b USAGE_BEFORE_INSTANCE from", "t BAD_VALUE ", "nul BAD_VALUE id", " BAD_VALUE ",
		"m UNKNOWN_VALUE memberId", "ok1 USAGE_ID_REUSED id"}, got)
	require.EqualValues(t, 10, b.stats.Quarantined.Load())
	b.SQL(`UPDATE usage_source SET cursor = ''`)
	b.look()
	require.Equal(t, 10, b.Count("usage_quarantine", "true"), "each once")
	require.EqualValues(t, 10, b.stats.Quarantined.Load())
}

func TestAnAdapterThatFailsIsReadAgainLater(t *testing.T) {
	t.Parallel()
	b, r, instance := metered(t)
	r.add(record("a", "jobs", "1"))
	r.status = http.StatusServiceUnavailable
	b.look()
	b.look()
	require.Equal(t, 1, b.Count("usage_source",
		"source = $1 AND failures = 2 AND last_error LIKE '%it has no time%' AND due_at > now() + interval '8 seconds'",
		instance.ID))
	r.status = 0
	b.look()
	require.Equal(t, 1, b.Count("usage_source", "source = $1 AND failures = 0 AND last_error = ''", instance.ID))
	require.Equal(t, map[string]string{"jobs": "1"}, b.sums())
}

// Late, repeated, retracted: whatever the order in which records come, however they are cut, and whatever was booked
// between them, the same rows are there, and the same books.
func TestTheOrderInWhichRecordsComeMakesNoDifference(t *testing.T) {
	t.Parallel()
	var first string
	var books []string
	for seed := range uint64(6) {
		b, r, _ := metered(t)
		period := b.openBooks()
		random := rand.New(rand.NewPCG(seed, 7))
		var all []string
		for n := range 30 {
			all = append(all, record(fmt.Sprintf("r%d", n), []string{"jobs", "tokens", "pods"}[n%3],
				fmt.Sprintf("%d.5", n)))
			if n%5 == 0 {
				all = append(all, record(fmt.Sprintf("back-%d", n), []string{"jobs", "tokens", "pods"}[n%3],
					fmt.Sprintf("-%d.50", n), "retracts", fmt.Sprintf("r%d", n)))
			}
		}
		all = append(all, all[:random.IntN(len(all))]...) // sent again
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for len(all) > 0 {
			some := 1 + random.IntN(len(all))
			r.add(all[:some]...)
			all = all[some:]
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { b.look() })
			}
			both.Wait()
			b.book(period)
		}
		for b.Count("usage_source", "basis = 'APP' AND cursor <> $1", strconv.Itoa(len(r.records))) > 0 {
			b.look()
		}
		var rows string
		require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT string_agg(meter || usage_id || quantity
			|| coalesce(retracts, ''), ' ' ORDER BY meter, usage_id)
			FROM usage_record`).Scan(&rows))
		if first == "" {
			first, books = rows, b.closeBooks(period)
			require.NotEmpty(t, books)
			continue
		}
		require.Equal(t, first, rows, "seed %d", seed)
		require.Equal(t, books, b.closeBooks(period), "seed %d", seed)
		require.Zero(t, b.Count("usage_quarantine", "true"))
	}
}
