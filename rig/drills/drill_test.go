package drills_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	book "github.com/gpuaas/app-platform/domain/runbook"
	"github.com/gpuaas/app-platform/rig/drills/walker"
	"github.com/gpuaas/app-platform/sdk/runbook"
)

// patience bounds one wait of a drill.
var patience = flag.Duration("drills.patience", time.Minute, "how long a drill waits for what it expects")

// drill is the fault of an edge and what the edge says to do about it.
type drill struct {
	// quick is for the drill of its runbook that CI runs.
	quick bool
	// fault breaks something, and says what the walk is about: a request that is refused, an operation, or nothing but
	// what the installation shows by itself.
	fault func(w *ward)
	// cure does what the edge says. Afterwards the refused request succeeds, or the edge is not taken any more.
	cure func(w *ward)
}

// table is every drill, by the edge's place as runbook/check/edge.
func table() map[string]drill {
	all := map[string]drill{}
	for _, part := range []map[string]drill{catalogDrills, publishingDrills, promotionDrills, billingDrills,
		adapterDrills,
		lifecycleDrills, recordDrills, nodeDrills, machineDrills, serverDrills, databaseDrills, feedDrills,
		expiryDrills,
		operatorDrills, systemDrills, fetchDrills} {
		maps.Copy(all, part)
	}
	return all
}

// edges are all edges of a runbook, by their places.
func edges(of runbook.Runbook) map[string]runbook.Edge {
	all := map[string]runbook.Edge{}
	for _, check := range of.Checks {
		for _, edge := range check.Edges {
			all[of.Name+"/"+check.Key+"/"+edge.Key] = edge
		}
	}
	return all
}

func everyEdge() map[string]runbook.Edge {
	all := map[string]runbook.Edge{}
	for _, one := range book.All() {
		maps.Copy(all, edges(one))
	}
	return all
}

// update rewrites the golden list of what no drill reaches.
var update = flag.Bool("update", false, "rewrite the golden list")

// Every edge has a drill, or a line with its reason in the list that is read at its review.
func TestEveryEdgeHasADrillOrAReasonWhyNot(t *testing.T) {
	t.Parallel()
	drills, all := table(), everyEdge()
	var lines []string
	for _, place := range slices.Sorted(maps.Keys(all)) {
		edge := all[place]
		_, drilled := drills[place]
		reason, listed := undrilled[place]
		require.NotEqual(t, drilled, listed, "%s: either a drill or a reason", place)
		require.True(t, edge.Person != "" || len(edge.Conditions()) > 0, "%s: nothing takes it", place)
		require.NotEmpty(t, edge.Act.String(), "%s: no action", place)
		if edge.Person != "" {
			lines = append(lines, place+": a person sees it: "+edge.Person)
		}
		if !drilled {
			lines = append(lines, place+": no drill: "+reason)
		}
	}
	for place := range drills {
		require.Contains(t, all, place, "a drill of an edge that there is not")
	}
	for _, place := range slices.Sorted(maps.Keys(undrilled)) {
		require.Contains(t, all, place, "a reason of an edge that there is not")
	}
	golden := filepath.Join("testdata", "people.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), strings.Join(lines, "\n")+"\n")
}

// Whatever conditions go by is read by the walker.
func TestTheWalkerReadsEveryFact(t *testing.T) {
	t.Parallel()
	for _, known := range runbook.KnownFacts() {
		require.True(t, walker.Reads(known.Name), "nothing reads %s", known.Name)
	}
}

// CI drills one edge of each runbook.
func TestEachRunbookHasAQuickDrill(t *testing.T) {
	t.Parallel()
	quick := map[string]int{}
	for place, one := range table() {
		if one.quick {
			quick[strings.Split(place, "/")[0]]++
		}
	}
	for _, one := range book.All() {
		require.Positive(t, quick[one.Name], one.Name)
	}
}

// TestDrills breaks, walks and cures.
func TestDrills(t *testing.T) {
	drills := table()
	for _, one := range book.All() {
		for _, place := range slices.Sorted(maps.Keys(edges(one))) {
			drill, found := drills[place]
			if !found || !drill.quick && !*long {
				continue
			}
			t.Run(place, func(t *testing.T) {
				begun := time.Now()
				walked(t, one, place, drill)
				t.Log(place, "took", time.Since(begun).Round(time.Millisecond))
			})
		}
	}
}

// walked does a drill from its fault to its end.
func walked(t *testing.T, of runbook.Runbook, place string, drill drill) {
	edge := edges(of)[place]
	w := newWard(t)
	defer func() {
		if t.Failed() {
			w.explain()
		}
	}()
	drill.fault(w)
	if edge.Person == "" {
		w.await(of, place, true)
	}
	w.did = nil
	drill.cure(w)
	if w.request != nil {
		w.eventually("the request is accepted after the cure", func() error { return w.request() })
	}
	if act := edge.Act; len(act.Calls) > 0 && act.Outside == "" && act.Wait == "" {
		require.True(t, slices.ContainsFunc(act.Calls, func(call string) bool { return slices.Contains(w.did, call) }),
			"the cure of %s calls %v and not %v", place, w.did, act.Calls)
	}
	if w.request != nil {
		return
	}
	if edge.Person == "" {
		w.cured = time.Now()
		w.await(of, place, false)
	}
}

// quiet is for how long the logs must not have shown what was cured: what was under way then may say so once more.
const quiet = 10 * time.Second

// await waits until the walk of the runbook takes the edge, or takes it no more.
func (w *ward) await(of runbook.Runbook, place string, taken bool) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is taken: %v", place, taken), func() error {
		if w.request != nil {
			w.about.Refused = w.request()
		}
		if !taken {
			w.walker.Since = slices.MaxFunc([]time.Time{w.cured, time.Now().Add(-quiet)}, time.Time.Compare)
		}
		facts := w.walker.Facts(w.ctx, of, w.about)
		found, _, _ := of.Walk(facts)
		if (of.Name+"/"+found == place) == taken {
			return nil
		}
		return fmt.Errorf("the walk takes %q by %v", found, facts)
	})
}

// eventually waits until try returns nil.
func (w *ward) eventually(what string, try func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, max(*patience, w.patience))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		last := try()
		if last == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(w.t, last, what)
		case <-tick.C:
		}
	}
}
