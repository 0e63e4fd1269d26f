package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Bounds of looking at canaries. One is looked at as soon as a launch of its app has ended; the look at all of them
// only makes sure, for a launch that was older than the newest operations or whose end was not reported.
const (
	canariesEvery = time.Minute
	maxCanaries   = 100
	// canaryGrace is how long before the last look an end may lie that the look did not see, since it was not
	// committed yet.
	canaryGrace = 10 * time.Second
)

// canariesSQL are the canaries that could be halted.
const canariesSQL = `SELECT m.id FROM manifest m WHERE m.stage = 'CANARY' AND m.canary_started_at IS NOT NULL
	AND m.canary_halted_at IS NULL`

// freshCanariesSQL are those among them with a launch of their app among the newest operations that has ended since.
const freshCanariesSQL = `WITH ended AS MATERIALIZED (SELECT DISTINCT i.app_slug
		FROM (SELECT instance_id, kind, ended_at FROM operation ORDER BY id DESC LIMIT $2) o
		JOIN instance i ON i.id = o.instance_id
		WHERE o.kind = 'INSTANCE_CREATE' AND o.ended_at > $3) ` +
	canariesSQL + ` AND m.app_slug IN (SELECT app_slug FROM ended) ORDER BY m.id LIMIT $1`

// canaries halts those whose launches fail clearly more often than those of the active version.
func (r *Reconciler) canaries(ctx context.Context) error {
	return r.halt(ctx, canariesSQL+` ORDER BY m.id LIMIT $1`, maxCanaries)
}

// freshCanaries looks at those with a launch that has ended since the time given.
func (r *Reconciler) freshCanaries(ctx context.Context, since time.Time) error {
	return r.halt(ctx, freshCanariesSQL, maxCanaries, newestOps, since.Add(-canaryGrace))
}

// halt judges what the query lists, and halts what is worse. One that cannot be judged does not keep others from it.
func (r *Reconciler) halt(ctx context.Context, sql string, args ...any) error {
	found, err := r.DB.Worker().Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("list canaries: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("list canaries: %w", err)
	}
	service := canary.Service{DB: r.DB}
	var wrong error
	for _, id := range list {
		ctx, cancel := context.WithTimeout(ctx, jobTimeout)
		halted, err := service.Halt(ctx, id)
		cancel()
		wrong = errors.Join(wrong, err)
		if halted != nil {
			r.Stats.CanariesHalted.Add(1)
			r.Log.Error("a canary is clearly worse and was halted", "app_slug", halted.AppSlug, "version",
				halted.Version, "manifest", id, "reason", halted.Reason)
		}
	}
	return wrong
}

// launches looks at canaries whenever operations have ended, at most once in freshEvery, until ctx ends.
func (r *Reconciler) launches(ctx context.Context) error {
	looked := r.DB.Now()
	return r.told(ctx, event.EndedTopic, "canaries", func(ctx context.Context) error {
		now := r.DB.Now()
		err := r.freshCanaries(ctx, looked)
		if err == nil {
			looked = now
		}
		return err
	})
}
