package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
)

// The bar of policy: every question of a launch, with 1,000 rules on three levels.
const (
	maxLaunchAsked = 20 * time.Microsecond
	ruleWords      = 56 // a list; six lists on each of three levels
	policyRuns     = 100
	launchesARun   = 100
)

// measurePolicy evaluates every rule that a launch into two allocations is checked against. The time for reading the
// overlays and building tables of them is reported apart.
func measurePolicy(_ context.Context, b *kit.Bench) error {
	documents, rules, err := overlays()
	if err != nil {
		return err
	}
	began := time.Now()
	effective, err := merged(documents)
	if err != nil {
		return err
	}
	made := time.Since(began)
	each, err := askLaunch(effective)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("policy of a launch, %d rules on three levels", rules)
	b.Sheet.Within(name, fmt.Sprintf("%.1f µs", float64(each)/1000), "≤ 20 µs",
		each <= maxLaunchAsked && rules >= 1_000)
	b.Sheet.Told("reading those overlays", kit.Millis(made), "", 0)
	return nil
}

// overlays are a document for each level, and how many values they rule about.
func overlays() (documents map[lifecycle.PolicyScope]json.RawMessage, rules int, err error) {
	words := func(format string, extra ...string) []string {
		list := append([]string{}, extra...)
		for i := range ruleWords - len(extra) {
			list = append(list, fmt.Sprintf(format, i))
		}
		return list
	}
	documents = make(map[lifecycle.PolicyScope]json.RawMessage)
	for _, scope := range levels {
		whole := map[string]any{
			"regions":         map[string]any{"allow": words("region-%d", "here")},
			"skus":            map[string]any{"allow": words("sku-%d", "big"), "deny": words("old-%d")},
			"artifactSources": map[string]any{"allow": words("registry-%d.example/team", "registry.example/apps")},
			"apps":            map[string]any{"deny": words("app-%d")},
			"versions":        map[string]any{"allow": words("app-%d@>=1 <3", "hello@>=1.2 <2")},
			"maxMembers":      1_000, "maxMembersPerInstance": 100, "maxGpus": 1_000, "maxInstances": 100,
			"maxHourlyCost": map[string]any{"amountMicros": 1_000_000_000, "currency": "EUR"},
		}
		rules += 6*ruleWords + 5
		if documents[scope], err = json.Marshal(whole); err != nil {
			return nil, 0, err
		}
	}
	return documents, rules, nil
}

var levels = []lifecycle.PolicyScope{lifecycle.PolicyPlatform, lifecycle.PolicyTenant, lifecycle.PolicyProject}

func merged(documents map[lifecycle.PolicyScope]json.RawMessage) (*policy.Effective, error) {
	var list []policy.Level
	for i, scope := range levels {
		document, err := policy.Parse(scope, documents[scope])
		if err != nil {
			return nil, err
		}
		id := dataset.ID(ids.PolicyOverlay, i)
		list = append(list, policy.Level{Scope: scope, OverlayID: &id, Document: document})
	}
	return policy.Merge(list...), nil
}

// askLaunch is what all questions of one launch cost, in time of this thread's own: the best of some runs.
func askLaunch(rules *policy.Effective) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := time.Duration(math.MaxInt64)
	spent := policy.Spending{Hourly: map[string]money.Decimal{"EUR": money.Must("0.000005")}}
	for range policyRuns {
		began := threadTime()
		for range launchesARun {
			err := policy.Join(rules.App("hello", "x"), rules.Version("hello", "1.4.2", "x"),
				rules.Mode(lifecycle.ModeTenantDedicated, lifecycle.ControlPlaneProject, "x"),
				rules.MembersOfInstance(8, "x"),
				rules.Members(80, "x"),
				rules.Instances(3, "x"), rules.GPUs(64, "x"), rules.HourlyCost(spent, "x"),
				rules.Source("registry.example/apps/hello@sha256:0", "x"),
				rules.Region("here", "x"), rules.SKU("big", "x"), rules.Region("here", "x"), rules.SKU("big", "x"))
			if err != nil {
				return 0, fmt.Errorf("the launch that is measured is refused: %w", err)
			}
		}
		best = min(best, (threadTime()-began)/launchesARun)
	}
	return best, nil
}
