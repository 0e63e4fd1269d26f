package dataset_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
)

// pages is what of EXPLAIN's answer says how many pages a statement looked at, with the functions that it called.
type pages []struct {
	Plan struct {
		Hit  int `json:"Shared Hit Blocks"`
		Read int `json:"Shared Read Blocks"`
		Rows int `json:"Actual Rows"`
	} `json:"Plan"`
}

// look carries a statement out and returns the rows it found and the pages it read. The statement runs twice, so that
// reads of the catalogues are not counted.
func (r *rig) look(sql string, arguments ...any) (found, looked int) {
	r.Helper()
	conn, err := r.set.Admin.Acquire(r.Context())
	require.NoError(r, err)
	defer conn.Release()
	for range 2 {
		var text []byte
		require.NoError(r, conn.QueryRow(r.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, arguments...).
			Scan(&text))
		var answer pages
		require.NoError(r, json.Unmarshal(text, &answer))
		found, looked = answer[0].Plan.Rows, answer[0].Plan.Hit+answer[0].Plan.Read
	}
	return found, looked
}

const (
	pickSQL = `SELECT * FROM platform.pick_node('GPU_SLICE', 1, '', '', NULL, '{}', NULL, '{}', '{NAMESPACE}', false,
		'', '{}', '{}', $1, 0)`
	fitsSQL = `SELECT * FROM platform.capacity_now(NULL, '{}', NULL, '{}', '{NAMESPACE}', false, '', '{}', '{}', '')`
)

// TestAPlacementReadsNodesAndWhatTheyHoldOnce has a node picked out of thousands that are allocated, and counts pages.
// A page has many nodes or allocations, so that pages are few unless each node is queried by itself.
func TestAPlacementReadsNodesAndWhatTheyHoldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	most := planned.Instances / 4
	for _, one := range []struct {
		name, sql string
		arguments []any
	}{{"a node for a GPU", pickSQL, []any{""}}, {"what would fit", fitsSQL, nil}} {
		found, looked := r.look(one.sql, one.arguments...)
		require.Zero(t, found, "%s: every node is held whole", one.name)
		require.Less(t, looked, most, one.name)
	}
	free := dataset.ID(ids.Node, planned.Instances-1)
	_, err := r.set.Admin.Exec(t.Context(), `UPDATE allocation SET gpu_count = 3, shape = 'GPU_SLICE'
		WHERE node_id = $1`, free)
	require.NoError(t, err)
	found, looked := r.look(pickSQL, "")
	require.Equal(t, 1, found)
	require.Less(t, looked, most)
	found, looked = r.look(pickSQL, string(free))
	require.Equal(t, 1, found)
	require.Less(t, looked, 60, "a node that is named is the only one that is looked at")
}
