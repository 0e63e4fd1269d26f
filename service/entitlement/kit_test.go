package entitlement_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/entitlement"
)

// bench is the service under test with an operator.
type bench struct {
	*platformtest.Kit
	verbs    *entitlement.Service
	operator context.Context
	t        *testing.T
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	return &bench{Kit: kit, verbs: &entitlement.Service{DB: kit.DB}, t: t, operator: kit.As(kit.Operator())}
}

// refused wants a fault of the code with reasons at the paths.
func refused(t *testing.T, err error, code fault.Code, path ...string) {
	t.Helper()
	got, ok := fault.As(err)
	require.True(t, ok, "want %s, got %v", code, err)
	require.Equal(t, code, got.Code, err.Error())
	var at []string
	for _, reason := range got.Reasons {
		at = append(at, reason.Path)
	}
	for _, p := range path {
		require.Contains(t, at, p, err.Error())
	}
}

func (b *bench) audited(action, code string) int {
	n := 0
	for _, entry := range b.Audit() {
		if entry.Action == action && entry.Code == code && entry.Allowed == (code == "") {
			n++
		}
	}
	return n
}
