package repair

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/health"
)

const (
	defaultNodeGrace = 5 * time.Minute // a node not heard for that long is lost to its members
	maxLost          = 500             // members that one look fails
)

func (r *Repairer) nodeGrace() time.Duration {
	if r.NodeGrace == 0 {
		return defaultNodeGrace
	}
	return r.NodeGrace
}

// settled reports whether this process has looked for as long as a node may be silent: when the platform itself was
// away, every node was.
func (r *Repairer) settled() bool { return r.DB.Now().Sub(r.since) >= r.nodeGrace() }

// lostOnNodes are members in service whose node was retired, or has been silent for longer than its grace while
// another is online: where none is, it is the platform that receives nothing. The states imply NOT removed; it is
// written besides for the index by node, whose condition it is.
const lostOnNodes = `SELECT m.id, n.name, n.status = 'RETIRED' FROM compute_node n JOIN member m ON m.node_id = n.id
	JOIN instance i ON i.id = m.instance_id
	WHERE (n.status = 'RETIRED' OR $3 AND n.status = 'OFFLINE' AND coalesce(n.last_seen_at, n.created_at) < now() -
	make_interval(secs => $1)
		AND EXISTS (SELECT FROM compute_node heard WHERE heard.status = 'ONLINE'))
	AND m.status IN ('ACTIVE', 'DRAINING', 'DRAINED') AND NOT m.removed AND i.status = 'RUNNING' ORDER BY m.id LIMIT $2`

// FailOnLostNodes fails members at rest whose node is lost: a node that only restarts is online again long before.
func (r *Repairer) FailOnLostNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, lostOnNodes, r.nodeGrace().Seconds(), maxLost, r.settled())
	if err != nil {
		return fmt.Errorf("find members of lost nodes: %w", err)
	}
	type stranded struct {
		ID      ids.ID
		Node    string
		Retired bool // and not only silent
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[stranded])
	if err != nil {
		return fmt.Errorf("find members of lost nodes: %w", err)
	}
	for _, one := range list {
		age := r.nodeGrace()
		if one.Retired {
			age = 0
		}
		err := r.DB.As(ctx, repairer, func(ctx context.Context, t *tx.Tx) error {
			_, err := health.Fail(ctx, t, health.Finding{MemberID: one.ID, Cause: lifecycle.FailureNodeLost,
				Message: "its node " + one.Node + " is lost", Age: age})
			return err
		})
		if err != nil {
			return fmt.Errorf("fail member %s: %w", one.ID, err)
		}
	}
	return nil
}
