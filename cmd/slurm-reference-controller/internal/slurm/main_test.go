package slurm

import (
	"os"
	"testing"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/ownnet"
)

func TestMain(m *testing.M) { os.Exit(ownnet.Run(m)) }
