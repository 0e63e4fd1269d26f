package entitlement_test

import (
	"context"
	"testing"

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
