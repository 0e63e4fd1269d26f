// Package cordon refuses nodes that take no new members.
package cordon

import (
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/nodehealth"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// Check refuses a node that takes no new members, since it is cordoned or its agent's checks found a condition that
// keeps them away: FAILED_PRECONDITION at the path of the input that led there. A node that is not known is let
// through.
func Check(node *db.ComputeNode, path string) error {
	if node == nil {
		return nil
	}
	if node.Cordoned {
		why := ""
		if node.CordonReason != "" {
			why = " (" + node.CordonReason + ")"
		}
		return bars(fault.NodeCordoned, path, "node %s is cordoned%s", node.Name, why)
	}
	if barring := nodehealth.Barring(node.Conditions); len(barring) > 0 {
		return bars(fault.NodeCondition, path, "node %s takes no new members: %s: %s", node.Name, barring[0].Name,
			barring[0].Message)
	}
	return nil
}

func bars(code fault.Code, path, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return fault.New(fault.FailedPrecondition, "%s; take an allocation on another node", message).
		With(fault.Reason{Code: code, Message: message, Path: path})
}
