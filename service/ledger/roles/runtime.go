package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Runtime is what an app's adapter says of a component, in the app's own words.
type Runtime struct {
	Health lifecycle.Health `json:"health"`
	// Summary is one line for a person.
	Summary string `json:"summary"`
	// Detail is the adapter's own; nil for none.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// KeepRuntime keeps what an adapter reports of the components of a locked instance, by their keys; for a component that
// is missing nothing is kept. It reports whether anything changed.
func KeepRuntime(ctx context.Context, t *tx.Tx, instanceID ids.ID, said map[string]*Runtime) (bool, error) {
	var stored []byte
	if err := t.QueryRow(ctx, `SELECT coalesce(roles, '[]') FROM instance
		WHERE id = $1`, instanceID).Scan(&stored); err != nil {
		return false, fmt.Errorf("read the roles of %s: %w", instanceID, err)
	}
	var counts []Count
	if err := json.Unmarshal(stored, &counts); err != nil {
		return false, fmt.Errorf("read the roles of %s: %w", instanceID, err)
	}
	changed := false
	for i := range counts {
		now := said[counts[i].ComponentKey]
		if counts[i].Current == 0 {
			now = nil
		}
		changed = changed || !same(counts[i].Runtime, now)
		counts[i].Runtime = now
	}
	if !changed {
		return false, nil
	}
	encoded, err := json.Marshal(counts)
	if err != nil {
		return false, fmt.Errorf("encode the roles of %s: %w", instanceID, err)
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET roles = $2 WHERE id = $1`, instanceID, encoded); err != nil {
		return false, fmt.Errorf("store the roles of %s: %w", instanceID, err)
	}
	return true, nil
}

// same reports whether two say the same. The database reorders a detail's members.
func same(a, b *Runtime) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Health == b.Health && a.Summary == b.Summary && sameDetail(a.Detail, b.Detail)
}

func sameDetail(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return false
	}
	return reflect.DeepEqual(left, right)
}
