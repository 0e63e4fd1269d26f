package reconcile_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

func (l *lab) said(row *db.Instance) *roles.Runtime {
	l.Helper()
	found, err := (&instance.View{Instance: l.Ent.Instance.GetX(l.Context(), row.ID)}).Roles()
	require.NoError(l.TB, err)
	return found[0].Runtime
}

func TestWhatAnAdapterSaysOfAComponentIsKeptUntilItSaysNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	row := l.running()
	r, _ := l.reconcile()
	look := func(said ...adapter.RoleObservation) {
		l.observes(adapter.Observation{Health: adapter.Healthy, Roles: said,
			Members: []adapter.MemberObservation{{ID: string(l.member(row).ID), Health: adapter.Healthy}}})
		for range 2 {
			seen := r.Stats.Observed.Load()
			l.until("it is seen", func() bool { l.ended(row); return r.Stats.Observed.Load() > seen })
		}
	}
	look(adapter.RoleObservation{ComponentKey: "worker", Health: adapter.Degraded, Summary: "1 idle,\n1 down",
		Detail: json.RawMessage(`{"idle": 1}`)},
		adapter.RoleObservation{ComponentKey: "nobody", Health: adapter.Healthy, Summary: "is not there"})
	l.until("it is kept", func() bool { return l.said(row) != nil })
	kept := l.said(row)
	require.Equal(t, []any{"DEGRADED", "1 idle, 1 down"}, []any{string(kept.Health), kept.Summary})
	require.JSONEq(t, `{"idle": 1}`, string(kept.Detail))
	look(adapter.RoleObservation{ComponentKey: "worker", Health: "splendid", Summary: "busy",
		Detail: json.RawMessage(`[1]`)})
	l.until("the newest is kept", func() bool { return l.said(row).Summary == "busy" })
	require.Equal(t, &roles.Runtime{Health: "UNKNOWN", Summary: "busy"}, l.said(row),
		"a health of no contract is unknown, a list is not an object")
	look()
	l.until("nothing is said any more", func() bool { return l.said(row) == nil })
}
