package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// cluster gives the walk a project of its own with the cluster that the documents speak of: demo, with three peers, and
// two more allocations.
func (w *walker) cluster() {
	w.t.Helper()
	for _, name := range []string{"slot-1", "slot-2", "slot-3"} {
		w.says("dana", "appctl allocations request --shape gpu-slice --gpus 1 --name "+name)
	}
	w.demo = w.says("dana", "appctl launch hello-cluster --name demo --allocation slot-1 --wait -q")
	w.says("dana", "appctl members add demo --component peer --count 1 --allocation slot-1 --yes --wait -q")
	w.known["NAME"], w.known["SLUG"], w.known["APP@VERSION"] = "demo", "hello-cluster", "hello-cluster@"+w.says("dana",
		`appctl instances show demo -o json | sed -n 's/^  "appVersion": "\(.*\)",$/\1/p'`)
	w.known["TENANT"] = shared.Demo.TenantID
	w.known["OPERATION"] = w.newest("appctl ops list --instance demo -q")
	w.known["ins"], w.known["usr"] = w.demo, shared.Demo.MemberID
}

// waitingDrain is a drain that waits for work.
func (w *walker) waitingDrain() string {
	w.t.Helper()
	var members []struct {
		ID, Status string
		Index      int
	}
	require.NoError(w.t, json.Unmarshal([]byte(w.says("dana", "appctl members list demo -o json")), &members))
	for _, member := range members {
		if member.Status == "ACTIVE" {
			w.says("dana", fmt.Sprintf(`appctl action run demo work.start --input '{"seconds":600,"member":"peer-%d"}'`,
				member.Index))
			id := w.says("dana", "appctl members drain "+member.ID+" --no-plan -q")
			w.waits[id] = true
			return id
		}
	}
	w.t.Fatal("no member is active")
	return ""
}

// settled waits until nothing moves in the cluster but what waits for work: a plan holds for a cluster at rest.
func (w *walker) settled() {
	w.t.Helper()
	if w.demo == "" {
		return
	}
	require.Eventually(w.t, func() bool {
		var operations []struct{ ID, State string }
		require.NoError(w.t, json.Unmarshal([]byte(w.says("dana", "appctl ops list --instance demo -o json")),
			&operations))
		return !slices.ContainsFunc(operations, func(one struct{ ID, State string }) bool {
			return !w.waits[one.ID] && !slices.Contains([]string{"SUCCEEDED", "FAILED", "CANCELED"}, one.State)
		})
	}, time.Minute, 100*time.Millisecond)
}

// ended gives everything back that the walk has used.
func (w *walker) ended() {
	if w.gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	w.ctx = ctx
	for _, id := range strings.Fields(w.says("dana", "appctl instances list -q")) {
		w.says("dana", "appctl decommission "+id+` --force --reason "the walk is over" --yes --wait -q`)
	}
	for _, id := range strings.Fields(w.says("dana", "appctl allocations list -q --status ready")) {
		w.says("dana", "appctl allocations release "+id+" --wait -q")
	}
	w.says("dana", `appctl admin project delete --reason "the walk is over" -q`)
}
