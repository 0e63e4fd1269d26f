package authz

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

// manyBindings is how many bindings the actor of the benchmark holds.
const manyBindings = 100_000

// crowded is an actor with manyBindings, one in ten at a tenant, and the scopes in the order of the bindings.
func crowded(tb testing.TB) (*Actor, []Binding) {
	tb.Helper()
	bindings := make([]Binding, manyBindings)
	for i := range bindings {
		raw := [16]byte{1, byte(i >> 16), byte(i >> 8), byte(i), 0xA5}
		bindings[i] = Binding{Role: ProjectMember, TenantID: ids.From(ids.Tenant, raw)}
		if i%10 != 0 {
			bindings[i].ProjectID = ids.From(ids.Project, raw)
		}
	}
	return user(bindings...), bindings
}

// It does not run beside others, whose allocations would be counted as its own.
func TestDecisionAllocatesNothingAtAHundredThousandBindings(t *testing.T) {
	actor, bindings := crowded(t)
	i, allowed := 0, 0
	allocs := testing.AllocsPerRun(1000, func() {
		b := bindings[i*7919%len(bindings)]
		if actor.Allows(SchedulerQueueSubmit, b.TenantID, b.ProjectID) {
			allowed++
		}
		if actor.Allows(AppsInstanceDelete, b.TenantID, b.ProjectID) {
			allowed = -manyBindings
		}
		i++
	})
	require.Zero(t, allocs)
	require.Equal(t, i, allowed)
}

// BenchmarkAllows measures a decision for an actor that holds a hundred thousand bindings; loading them is apart.
func BenchmarkAllows(b *testing.B) {
	actor, bindings := crowded(b)
	for name, key := range map[string]Key{"held": SchedulerQueueSubmit, "lacking": AppsInstanceDelete} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				binding := &bindings[i*7919%len(bindings)]
				if actor.Allows(key, binding.TenantID, binding.ProjectID) != (name == "held") {
					b.Fatal("wrong decision")
				}
			}
		})
	}
}

// BenchmarkNewActor measures what loading a person's twenty bindings adds to a request.
func BenchmarkNewActor(b *testing.B) {
	_, bindings := crowded(b)
	b.ReportAllocs()
	for b.Loop() {
		user(bindings[:20]...)
	}
}
