package support_test

import (
	"testing"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/support"
	"github.com/gpuaas/app-platform/sdk/runbook/runbooktest"
)

func TestThePageIsWhatTheRunbookSays(t *testing.T) {
	t.Parallel()
	runbooktest.Check(t, support.Runbook, "../runbook.md")
}
