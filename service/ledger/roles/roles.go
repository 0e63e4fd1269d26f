// Package roles keeps an instance's read model of its components: how many members of each are wanted, how many there
// are, and what its adapter reports of them.
package roles

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// Count is the read model of one component, as it is stored on the instance's row: how many members are requested, how
// many have joined, and how many of those are healthy. Beside them is what its adapter reports of it.
type Count struct {
	ComponentKey string `json:"componentKey"`
	DisplayName  string `json:"displayName"`
	Desired      int    `json:"desired"`
	Current      int    `json:"current"`
	Healthy      int    `json:"healthy"`
	Summary      string `json:"summary"`
	// Runtime is nil while the adapter reports nothing of the component.
	Runtime *Runtime `json:"runtimeState,omitempty"`
	// Intent is the capacity that further members of it get; nil for none. It comes from the instance's row, not from
	// its read model.
	Intent *capacity.Want `json:"-"`
}

// seen is how many members of a component have a status and a health.
type seen struct {
	Key    string
	Status lifecycle.MemberStatus
	Health lifecycle.Health
	Count  int
}

// Recount keeps the instance's read model of its components. A caller that changes the status or the health of members
// calls it in the same transaction, with the instance's row locked.
func Recount(ctx context.Context, t *tx.Tx, instanceID ids.ID) error {
	reads, writes := &pgx.Batch{}, &pgx.Batch{}
	recount := QueueRecount(reads, instanceID)
	if err := t.SendBatch(ctx, reads).Close(); err != nil {
		return fmt.Errorf("count the members of %s: %w", instanceID, err)
	}
	if err := recount.Queue(writes); err != nil {
		return err
	}
	if err := t.SendBatch(ctx, writes).Close(); err != nil {
		return fmt.Errorf("store the roles of %s: %w", instanceID, err)
	}
	return nil
}

// Pending is Recount for a transaction that sends its statements together: QueueRecount's reads go
// after the last change of members, and what Queue writes goes out later.
type Pending struct {
	instanceID ids.ID
	stored     []byte
	counts     []seen
}

// QueueRecount queues the reads.
func QueueRecount(batch *pgx.Batch, instanceID ids.ID) *Pending {
	r := &Pending{instanceID: instanceID}
	batch.Queue(`SELECT coalesce(roles, '[]') FROM instance WHERE id = $1`, instanceID).
		QueryRow(func(row pgx.Row) error { return row.Scan(&r.stored) })
	batch.Queue(`SELECT component_key, status, health, count(*) FROM member WHERE instance_id = $1
		GROUP BY 1, 2, 3`, instanceID).
		Query(func(found pgx.Rows) (err error) {
			r.counts, err = pgx.CollectRows(found, pgx.RowToStructByPos[seen])
			return err
		})
	return r
}

// Queue queues the write of what was counted.
func (r *Pending) Queue(batch *pgx.Batch) error {
	encoded, err := r.Roles()
	if err != nil {
		return err
	}
	batch.Queue(`UPDATE instance SET roles = $2 WHERE id = $1`, r.instanceID, encoded)
	return nil
}

// Joined counts members that are joining as active, for a transaction that activates them after the reads.
func (r *Pending) Joined() {
	for i := range r.counts {
		if r.counts[i].Status == lifecycle.MemberJoining {
			r.counts[i].Status = lifecycle.MemberActive
		}
	}
}

// Roles returns the instance's roles with what was counted.
func (r *Pending) Roles() ([]byte, error) {
	var roles []Count
	if err := json.Unmarshal(r.stored, &roles); err != nil {
		return nil, fmt.Errorf("read the roles of %s: %w", r.instanceID, err)
	}
	for i := range roles {
		roles[i].recount(r.counts)
	}
	encoded, err := json.Marshal(roles)
	if err != nil {
		return nil, fmt.Errorf("encode the roles of %s: %w", r.instanceID, err)
	}
	return encoded, nil
}

// Health returns the health of an instance with these members: the worst of theirs, HEALTHY when all are, and UNKNOWN
// when one's is not known or there are not any.
func (r *Pending) Health() lifecycle.Health {
	health, members := lifecycle.HealthHealthy, 0
	for _, one := range r.counts {
		switch {
		case one.Status == lifecycle.MemberRemoved:
			continue
		case one.Health == lifecycle.HealthUnhealthy || one.Status == lifecycle.MemberFailed:
			return lifecycle.HealthUnhealthy
		case one.Health == lifecycle.HealthDegraded:
			health = lifecycle.HealthDegraded
		case one.Health != lifecycle.HealthHealthy && health == lifecycle.HealthHealthy:
			health = lifecycle.HealthUnknown
		}
		members += one.Count
	}
	if members == 0 {
		return lifecycle.HealthUnknown
	}
	return health
}

// First returns the roles of an instance that is launched with these counts, by component: all desired, none active.
func First(components []manifest.Component, counts map[string]int) (json.RawMessage, error) {
	roles := make([]Count, 0, len(components))
	for _, component := range components {
		desired := counts[component.Key]
		roles = append(roles, Count{
			ComponentKey: component.Key, DisplayName: component.DisplayName, Desired: desired,
			Summary: fmt.Sprintf("0 of %d active", desired),
		})
	}
	return json.Marshal(roles)
}

// WantMore raises how many members of a component are wanted, or lowers it (never below 0), and recounts. The caller
// has locked the instance's row; its roles are brought up to date.
func WantMore(ctx context.Context, t *tx.Tx, instance *db.Instance, key string, more int) error {
	var stored []byte
	if err := t.QueryRow(ctx, `SELECT coalesce(roles, '[]') FROM instance
		WHERE id = $1`, instance.ID).Scan(&stored); err != nil {
		return fmt.Errorf("read the roles of %s: %w", instance.ID, err)
	}
	roles, err := moreOf(stored, key, more)
	if err != nil {
		return fmt.Errorf("change the roles of %s: %w", instance.ID, err)
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET roles = $2 WHERE id = $1`, instance.ID, roles); err != nil {
		return fmt.Errorf("store the roles of %s: %w", instance.ID, err)
	}
	if err := Recount(ctx, t, instance.ID); err != nil {
		return err
	}
	return t.QueryRow(ctx, `SELECT roles FROM instance WHERE id = $1`, instance.ID).Scan((*[]byte)(&instance.Roles))
}

// moreOf is the stored roles with more or fewer members wanted of a component.
func moreOf(stored []byte, key string, more int) ([]byte, error) {
	var roles []Count
	if err := json.Unmarshal(stored, &roles); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(roles, func(r Count) bool { return r.ComponentKey == key })
	if at < 0 {
		roles, at = append(roles, Count{ComponentKey: key, DisplayName: key}), len(roles)
	}
	roles[at].Desired = max(roles[at].Desired+more, 0)
	return json.Marshal(roles)
}

// Wanted is how many members are wanted, by component, in the instance's roles.
func Wanted(instance *db.Instance) (map[string]int, error) {
	var roles []Count
	if len(instance.Roles) > 0 {
		if err := json.Unmarshal(instance.Roles, &roles); err != nil {
			return nil, fmt.Errorf("read the roles of %s: %w", instance.ID, err)
		}
	}
	wanted := make(map[string]int, len(roles))
	for _, role := range roles {
		wanted[role.ComponentKey] = role.Desired
	}
	return wanted, nil
}

// With are the instance's roles with other numbers wanted: an adapter is called with them to plan a change.
func With(instance *db.Instance, wanted map[string]int) (json.RawMessage, error) {
	present, err := Wanted(instance)
	if err != nil {
		return nil, err
	}
	roles := []byte(instance.Roles)
	if len(roles) == 0 {
		roles = []byte("[]")
	}
	for key, count := range wanted {
		if roles, err = moreOf(roles, key, count-present[key]); err != nil {
			return nil, fmt.Errorf("change the roles of %s: %w", instance.ID, err)
		}
	}
	return roles, nil
}

// recount counts the members that take part, those that have joined and are not on their way out, and sums them up.
func (r *Count) recount(counts []seen) {
	r.Current, r.Healthy = 0, 0
	in := make(map[lifecycle.MemberStatus]int)
	for _, one := range counts {
		if one.Key != r.ComponentKey {
			continue
		}
		in[one.Status] += one.Count
		if one.Status.AtRest() {
			r.Current += one.Count
			if one.Health == lifecycle.HealthHealthy {
				r.Healthy += one.Count
			}
		}
	}
	if r.Current == 0 { // nothing is left that it could be said of
		r.Runtime = nil
	}
	r.Summary = fmt.Sprintf("%d of %d active", in[lifecycle.MemberActive], r.Desired)
	for _, status := range []lifecycle.MemberStatus{lifecycle.MemberDraining, lifecycle.MemberDrained,
		lifecycle.MemberFailed} {
		if in[status] > 0 {
			r.Summary += fmt.Sprintf(", %d %s", in[status], lifecycle.Wire(status))
		}
	}
}
