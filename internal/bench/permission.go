package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/bench/dataset"
)

// The bars of a permission decision.
const (
	manyBindings = 100_000
	maxDecision  = 100 * time.Nanosecond
)

// measurePermission decides for a person who holds very many bindings, scope by scope. The half of
// the questions is allowed. Loading the bindings is apart.
func measurePermission(_ context.Context, b *bench) error {
	if err := authz.Load(); err != nil {
		return err
	}
	bindings := make([]authz.Binding, manyBindings)
	for i := range bindings {
		bindings[i] = authz.Binding{Role: authz.ProjectMember, TenantID: dataset.ID(ids.Tenant, i/4), ProjectID: dataset.ID(ids.Project, i)}
	}
	began := time.Now()
	actor := authz.NewActor(authz.Subject{Kind: authz.KindUser, ID: dataset.ID(ids.User, 0)}, bindings, nil, time.Now())
	loaded := time.Since(began)
	keys := []authz.Key{authz.SchedulerQueueSubmit, authz.AppsInstanceDelete}
	wrong := 0
	result := testing.Benchmark(func(t *testing.B) {
		t.ReportAllocs()
		for i := 0; t.Loop(); i++ {
			binding := &bindings[i*7919%len(bindings)]
			if actor.Allows(keys[i&1], binding.TenantID, binding.ProjectID) != (i&1 == 0) {
				wrong++
			}
		}
	})
	if wrong > 0 {
		return fmt.Errorf("%d wrong decisions", wrong)
	}
	each := time.Duration(result.NsPerOp())
	b.sheet.within("permission decision, 100,000 bindings", fmt.Sprintf("%d ns", each.Nanoseconds()), "≤ 100 ns", each <= maxDecision)
	b.sheet.within("permission decision, allocations", fmt.Sprint(result.AllocsPerOp()), "0", result.AllocsPerOp() == 0)
	b.sheet.told("loading 100,000 bindings", millis(loaded), "", 0)
	return nil
}
