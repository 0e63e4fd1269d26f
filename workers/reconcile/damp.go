package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	wellbeing "github.com/gpuaas/app-platform/service/ledger/health"
)

// What got worse counts when it is seen again: after confirmAfter, or after more than twice that while an operation
// works on the instance or has just ended, since daemons that are restarted by one are back within seconds.
const (
	confirmAfter  = 5 * time.Second
	settleTimes   = 24 // tenths of confirmAfter, while daemons are restarted
	justEnded     = "15 seconds"
	suspectsEvery = time.Second
)

// suspects are instances that looked worse than before once, with when they are looked at again.
func (r *Reconciler) suspectsDue(ctx context.Context) error {
	var due []ids.ID
	now := r.DB.Now()
	r.mu.Lock()
	for id, at := range r.suspects {
		if !at.After(now) {
			due = append(due, id)
		}
	}
	r.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	slices.Sort(due)
	return r.pollSoon(ctx, due)
}

// confirmed reports whether an observation counts now. One that shows nothing worse does, and clears what was
// suspected.
func (r *Reconciler) confirmed(ctx context.Context, t *tx.Tx, instance *db.Instance, seen observation,
	said lifecycle.Health) (bool, error) {
	worse, err := worsens(ctx, t, instance, seen, said)
	if err != nil {
		return false, err
	}
	if !worse || !seen.answered {
		r.clearSuspect(instance.ID)
		return true, nil
	}
	r.mu.Lock()
	at, known := r.suspects[instance.ID]
	r.mu.Unlock()
	if known && !at.After(t.Now) {
		r.clearSuspect(instance.ID)
		return true, nil
	}
	if known {
		return false, nil
	}
	var busy bool
	if err := t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM operation WHERE instance_id = $1
		AND (ended_at IS NULL OR ended_at > now() - interval '`+justEnded+`'))`, instance.ID).Scan(&busy); err != nil {
		return false, fmt.Errorf("find operations on %s: %w", instance.ID, err)
	}
	after := cmp.Or(r.Confirm, confirmAfter)
	if busy {
		after = after * settleTimes / 10
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspects[instance.ID] = t.Now.Add(after)
	return false, nil
}

func (r *Reconciler) clearSuspect(id ids.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.suspects, id)
}

// worsens reports whether an observation is worse than what is known: the instance's health, a member that failed, or
// that the instance cannot come back.
func worsens(ctx context.Context, t *tx.Tx, instance *db.Instance, seen observation,
	said lifecycle.Health) (bool, error) {
	if said.Worse(instance.Health) || seen.Lost != nil {
		return true, nil
	}
	failed := wellbeing.ReportedFailed(seen.Members)
	if len(failed) == 0 {
		return false, nil
	}
	news, err := t.Member.Query().Where(dbmember.InstanceID(instance.ID), dbmember.IDIn(failed...),
		dbmember.StatusIn(lifecycle.MemberActive, lifecycle.MemberDraining, lifecycle.MemberDrained)).Exist(ctx)
	if err != nil {
		return false, fmt.Errorf("find members of %s: %w", instance.ID, err)
	}
	return news, nil
}
