package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Two builds of the platform may run on one database. What an operation has stored of its steps means something only to
// builds with the same steps: an operation is claimed by the kinds that a build knows, is given the name of its step
// plan by the claim that begins it, and is carried on by that plan alone. An operation that no live worker knows waits.
// Its blockers state that, and an operator's decision ends it.

// Plan returns the name of the kind's step plan: a hash of the kind, of the names of its steps in their order, and of
// its revision.
func (k *Kind) Plan() string {
	all := []string{string(k.Kind), fmt.Sprint(k.Revision)}
	for _, step := range k.Steps {
		all = append(all, step.Name)
	}
	all = append(all, finishStep)
	for _, step := range k.Undo {
		all = append(all, step.Name)
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:8])
}

// unknownPlan is the plan of an operation that was begun before plans were stored, by steps that no build since has.
const unknownPlan = "unknown"

// learn takes the kinds that the engine carries out. The first of a kind begins operations; those that follow carry on
// what earlier builds began.
func (e *Engine) learn(kinds []Kind) {
	e.begin, e.plans = make(map[lifecycle.OperationKind]string), make(map[string]*Kind)
	for i := range kinds {
		kind, plan := &kinds[i], kinds[i].Plan()
		if _, begins := e.begin[kind.Kind]; !begins {
			e.begin[kind.Kind] = plan
		}
		e.plans[plan] = kind
		e.carry = append(e.carry, plan)
	}
}

// announced returns the kinds that the engine begins and the plans that it carries on, sorted.
func (e *Engine) announced() (kinds, plans []string) {
	for kind := range e.begin {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(kinds)
	return kinds, slices.Sorted(slices.Values(e.carry))
}

// planned finds the kind by which the operation is carried on. One that was begun before plans were stored is matched
// by the names of its steps; known is false when no plan of this build has them.
func (c *Context) planned() (known bool) {
	if c.Op.StepPlan != "" {
		c.kind = c.engine.plans[c.Op.StepPlan]
		return c.kind != nil
	}
	candidates := []string{c.engine.begin[c.Op.Kind]}
	if len(c.rows) > 0 {
		candidates = append(candidates, c.engine.carry...)
	}
	for _, plan := range candidates {
		if kind := c.engine.plans[plan]; kind != nil && kind.Kind == c.Op.Kind {
			if c.kind = kind; len(c.rows) == 0 || c.known() {
				return true
			}
		}
	}
	c.kind = nil
	return false
}

// strand lets go of an operation whose steps this build does not have, and names its plan so that no build takes it
// that does not know it. Nothing of it is ended: its steps would be evidence of what was not done.
func (c *Context) strand(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var id string
	err := c.DB().Worker().QueryRow(bounded, `UPDATE operation SET step_plan = CASE step_plan WHEN '' THEN $4
		ELSE step_plan END, claimed_by = NULL,
		next_run_at = now() WHERE id = $1 AND claim_epoch = $2 AND claimed_by = $3 AND ended_at IS NULL RETURNING id`,
		c.Op.ID, c.Op.ClaimEpoch, c.Op.Worker, unknownPlan).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return queue.ErrFenced
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", c.Op.ID, err)
	}
	c.Log.Error("no steps of this build match those that the operation has stored; it waits for a build that has "+
		"them, or for an operator", "step_plan", c.Op.StepPlan)
	return nil
}
