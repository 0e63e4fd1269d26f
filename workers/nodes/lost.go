package nodes

import (
	"context"
	"fmt"
)

// Lost makes what was rented on nodes FAILED that an operator retired as lost for good. Their members are failed as those
// of every lost node are: see workers/repair.
func (k *Keeper) Lost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := k.DB.Worker().Exec(ctx, `UPDATE allocation SET status = 'FAILED' FROM compute_node n
		WHERE n.id = allocation.node_id AND n.lost AND allocation.status = 'READY'`)
	if err != nil {
		return fmt.Errorf("fail what was rented on lost nodes: %w", err)
	}
	return nil
}
