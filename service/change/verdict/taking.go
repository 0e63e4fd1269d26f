package verdict

import (
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/cordon"
)

// taking refuses allocations whose node takes no new members: FAILED_PRECONDITION at the first of them.
func (v *Verdicts) taking(chosen []*db.Allocation) error {
	for i, allocation := range chosen {
		if allocation.NodeID == nil {
			continue
		}
		if err := cordon.Check(v.Nodes[*allocation.NodeID], v.allocationPath(i)); err != nil {
			return err
		}
	}
	return nil
}
