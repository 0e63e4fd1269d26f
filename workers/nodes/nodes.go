// Package nodes carries on what operators wish of nodes: drains, and machines that are lost for good. Each of its looks
// is bounded, and the process that reconciles makes them.
package nodes

import (
	"time"

	"github.com/gpuaas/app-platform/internal/tx"
)

// lookTimeout bounds a look.
const lookTimeout = 10 * time.Second

// Keeper looks at nodes.
type Keeper struct{ DB *tx.DB }
