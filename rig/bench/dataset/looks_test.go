package dataset_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/workers/reconcile"
)

// firstHeard is the part of a plan that reads nodes until the first that is online.
const firstHeard = "Seq Scan on compute_node heard"

// TestTheReconcilersLooksReadWhatIsAliveAlone has the reconcilers poll once, and reads the plans of those polls that a
// table's history would make longer and longer.
func TestTheReconcilersLooksReadWhatIsAliveAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	looks := []struct{ name, part, index string }{
		{"instances that run", "WHERE i.status = 'RUNNING' AND i.released_at IS NULL AND i.id > $1", "instance_live"},
		{"instances that are damaged", "m.failure IS NOT NULL AND m.instance_id > $2", "member_lost"},
		{"allocations without a node", "a.status = 'REQUESTED'", "allocation_requested"},
		{"allocations that nobody asked to keep", "a.created_by_operation_id IS NOT NULL", "allocation_brought"},
		{"instances without service", "unserved_at IS NOT NULL", "instance_unserved"},
		{"nodes that are not heard", "status = 'OFFLINE' ORDER BY id", "compute_node_away"},
		{"members of lost nodes", "n.status = 'RETIRED' OR $3", "compute_node_away"},
		{"what was rented on lost nodes", "WHERE n.lost ORDER BY a.id", "compute_node_lost"},
		{"nodes that are drained", "drain IS NOT NULL", "compute_node_drained"},
	}
	ring, err := token.NewKeyring("http://platform.test")
	require.NoError(t, err)
	client := adapterclient.New(ring, dial.Loopback())
	t.Cleanup(client.Close)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- reconcile.New(reconcile.Config{DB: r.db, Client: client, Keys: ring,
			Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	}()
	seen := make([]string, len(looks))
	require.Eventually(t, func() bool {
		sent, _ := r.sent.take()
		for i, look := range looks {
			for _, sql := range sent {
				if strings.Contains(sql, look.part) {
					seen[i] = sql
				}
			}
		}
		return !slices.Contains(seen, "")
	}, time.Minute, 10*time.Millisecond, "%q", seen)
	stop()
	require.NoError(t, <-ended)
	var text strings.Builder
	for i, look := range looks {
		plan := r.explain("app_worker", seen[i], nil)
		require.Contains(t, plan, look.index, look.name)
		require.NotRegexp(t, grow, strings.ReplaceAll(plan, firstHeard, ""), look.name)
		fmt.Fprintf(&text, "== %s\n%s\n\n", look.name, plan)
	}
	r.golden("looks.golden", text.String())
}
