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
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	return &bench{Kit: kit, verbs: &entitlement.Service{DB: kit.DB}, operator: kit.As(kit.Operator())}
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
