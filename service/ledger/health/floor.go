package health

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Bound is the best health that an instance may have by what the platform knows of its members.
type Bound struct {
	Health lifecycle.Health
	// Message says why; empty for HEALTHY.
	Message string
	// Unserved reports whether a component with FAILED members has fewer in service than the manifest demands.
	Unserved bool
}

// Apply returns what is worse: the health that was reported or the bound.
func (b Bound) Apply(health lifecycle.Health, message string) (lifecycle.Health, string) {
	if b.Health.Worse(health) {
		return b.Health, b.Message
	}
	return health, message
}

// standing counts the members of a component.
type standing struct {
	Key                      string
	Serving, Failed, Unheard int
}

const standingSQL = `SELECT m.component_key, count(*) FILTER (WHERE m.status IN ('ACTIVE', 'DRAINING', 'DRAINED')),
		count(*) FILTER (WHERE m.status = 'FAILED'),
		count(*) FILTER (WHERE m.status IN ('ACTIVE', 'DRAINING', 'DRAINED') AND n.status <> 'ONLINE')
	FROM member m LEFT JOIN compute_node n ON n.id = m.node_id
	WHERE m.instance_id = $1 AND NOT m.removed GROUP BY 1 ORDER BY 1`

// BoundOf reads the bound of a running instance: UNHEALTHY while a component with failed members has fewer in service
// than its minimum, UNKNOWN while one has fewer on nodes that are ONLINE, DEGRADED while any member is FAILED or on a
// node that is not ONLINE.
func BoundOf(ctx context.Context, t *tx.Tx, instance *db.Instance) (Bound, error) {
	found, err := t.Query(ctx, standingSQL, instance.ID)
	if err != nil {
		return Bound{}, fmt.Errorf("count the members of %s: %w", instance.ID, err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[standing])
	if err != nil {
		return Bound{}, fmt.Errorf("count the members of %s: %w", instance.ID, err)
	}
	well := true
	for _, one := range list {
		well = well && one.Failed == 0 && one.Unheard == 0
	}
	if well {
		return Bound{Health: lifecycle.HealthHealthy}, nil
	}
	least, err := minima(ctx, t, instance)
	if err != nil {
		return Bound{}, err
	}
	return bound(list, least), nil
}

// minima reads how few members of each component the instance's manifest allows.
func minima(ctx context.Context, t *tx.Tx, instance *db.Instance) (map[string]int, error) {
	var document []byte
	if err := t.QueryRow(ctx, `SELECT document FROM manifest WHERE id
		= $1`, instance.ManifestID).Scan(&document); err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", instance.ID, err)
	}
	parsed, err := manifest.Stored(document)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", instance.ID, err)
	}
	least := make(map[string]int, len(parsed.Components))
	for _, one := range parsed.Components {
		least[one.Key] = one.Min
	}
	return least, nil
}

// bound judges components by their minima.
func bound(list []standing, least map[string]int) Bound {
	out := Bound{Health: lifecycle.HealthHealthy}
	var said []string
	for _, one := range list {
		health := lifecycle.HealthDegraded
		switch {
		case one.Failed == 0 && one.Unheard == 0:
			continue
		case one.Failed > 0 && one.Serving < least[one.Key]:
			health, out.Unserved = lifecycle.HealthUnhealthy, true
		case one.Unheard > 0 && one.Serving-one.Unheard < least[one.Key]:
			health = lifecycle.HealthUnknown
		}
		if health.Worse(out.Health) {
			out.Health = health
		}
		if one.Failed > 0 {
			said = append(said, fmt.Sprintf("%d %s failed", one.Failed, one.Key))
		}
		if one.Unheard > 0 {
			said = append(said, fmt.Sprintf("%d %s on nodes that do not report", one.Unheard, one.Key))
		}
	}
	out.Message = strings.Join(said, ", ")
	return out
}
