package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	wellbeing "github.com/gpuaas/app-platform/service/ledger/health"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/transport"
)

// Bounds of observing.
const (
	observePage    = 100             // instances read at once
	observeAtOnce  = 8               // adapters' answers waited for at once
	observeToken   = 2 * time.Minute // life of the token that an observation gets
	observeMinGap  = 20 * time.Millisecond
	observeMaxGap  = time.Second
	toleratedFails = 2  // failures in a row after which the health is UNKNOWN
	maxGlance      = 10 // instances that are looked at out of turn at once
	newestOps      = 1_000
	maxText        = 2_000
)

// polled is a running instance and where to ask about it.
type polled struct {
	ID, Tenant, Project                  ids.ID
	App, Family, Adapter, URL, Authority string
	NarrowCalls, Sandbox                 bool
}

// observe asks the adapters about every running instance, spread over the pause between two sweeps.
func (r *Reconciler) observe(ctx context.Context) error {
	var after ids.ID
	for {
		page, err := r.running(ctx, watchedSQL+`i.id > $1 ORDER BY i.id LIMIT $2`, after, observePage)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := r.observePage(ctx, page); err != nil {
			return err
		}
		after = page[len(page)-1].ID
	}
}

// watchedSQL is an instance that runs, and its adapter.
const watchedSQL = `SELECT i.id, i.tenant_id, i.project_id, i.app_slug, i.permission_family, a.name, a.url, a.authority,
	a.narrow_calls,
		a.project_id IS NOT NULL
	FROM instance i JOIN adapter a ON a.name = i.runtime_backend WHERE i.status = 'RUNNING' AND i.released_at IS NULL AND `

// freshSQL are those on which one of the newest operations has ended since they were last seen.
const freshSQL = `WITH ended AS MATERIALIZED (SELECT instance_id, max(ended_at) AS at
		FROM (SELECT instance_id, ended_at FROM operation ORDER BY id DESC LIMIT $1) newest WHERE ended_at IS NOT NULL
		GROUP BY 1)
	SELECT i.id, i.tenant_id, i.project_id, i.app_slug, i.permission_family, a.name, a.url, a.authority, a.narrow_calls,
		a.project_id IS NOT NULL
	FROM ended JOIN instance i ON i.id = ended.instance_id JOIN adapter a ON a.name = i.runtime_backend
	WHERE i.status = 'RUNNING' AND i.released_at IS NULL AND (i.observed_at IS NULL OR ended.at > i.observed_at)
	ORDER BY ended.at LIMIT $2`

func (r *Reconciler) running(ctx context.Context, sql string, args ...any) (list []polled, err error) {
	found, err := r.DB.Worker().Query(ctx, sql, args...)
	if err == nil {
		list, err = pgx.CollectRows(found, pgx.RowToStructByPos[polled])
	}
	if err != nil {
		return nil, fmt.Errorf("list running instances: %w", err)
	}
	return list, nil
}

// pollEnded polls instances whose operations have ended since they were last seen: at most maxGlance of
// the newestOps newest operations. The others' turn comes with the sweep.
func (r *Reconciler) pollEnded(ctx context.Context) error {
	return r.pollAll(ctx, freshSQL, newestOps, maxGlance)
}

// pollSoon polls the running ones among some instances, at most maxGlance, out of turn.
func (r *Reconciler) pollSoon(ctx context.Context, wanted []ids.ID) error {
	return r.pollAll(ctx, watchedSQL+`i.id = ANY ($1) ORDER BY i.id LIMIT $2`, wanted, maxGlance)
}

// pollAll polls the instances that a statement finds.
func (r *Reconciler) pollAll(ctx context.Context, sql string, args ...any) error {
	list, err := r.running(ctx, sql, args...)
	if err != nil {
		return err
	}
	group := errgroup.Group{}
	group.SetLimit(observeAtOnce)
	for _, one := range list {
		group.Go(func() error {
			return r.looked(ctx, "an instance", func(ctx context.Context) error { r.poll(ctx, one); return nil })
		})
	}
	_ = group.Wait() // they log their own trouble
	return nil
}

// observePage polls a page of instances. An adapter that does not answer is not called again for this page.
func (r *Reconciler) observePage(ctx context.Context, page []polled) error {
	gap := min(max(observeEvery/time.Duration(len(page)+1), observeMinGap), observeMaxGap)
	var mu sync.Mutex
	silent := make(map[string]bool)
	group := errgroup.Group{}
	group.SetLimit(observeAtOnce)
	for _, one := range page {
		group.Go(func() error {
			mu.Lock()
			skip := silent[one.Adapter]
			mu.Unlock()
			answered := false
			if !skip {
				answered = r.poll(ctx, one)
			}
			mu.Lock()
			defer mu.Unlock()
			if !answered && !skip {
				silent[one.Adapter] = true
			}
			return nil
		})
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-time.After(gap):
		}
	}
	return group.Wait()
}

// poll calls the adapter for one instance and stores the answer; it reports whether the adapter can be
// called for others.
func (r *Reconciler) poll(ctx context.Context, one polled) bool {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	ctx, span := telemetry.Begin(ctx, "observe", attribute.String("app_instance_id", string(one.ID)))
	defer span.End()
	seen, err := r.ask(ctx, one)
	if ctx.Err() != nil && err == nil {
		return true
	}
	refused, isRefusal := adapterclient.As(err)
	silent := isRefusal && (refused.Kind == adapterclient.Unavailable || refused.Kind == adapterclient.Forbidden ||
		refused.Kind == adapterclient.Insecure)
	sees := observation{Observation: seen, answered: true}
	switch {
	case err == nil:
		r.count(string(one.ID), false)
	case isRefusal && refused.Kind == adapterclient.Missing:
		r.count(string(one.ID), false)
		sees.unknown = true
		sees.Observation = adapter.Observation{Health: adapter.HealthUnknown, Message: refused.Reason()}
	case !isRefusal:
		r.Log.Warn("an instance could not be observed", "app_instance_id", one.ID, "error", err)
		return true
	case r.count(string(one.ID), true) < toleratedFails:
		return !silent
	default:
		sees = observation{Observation: adapter.Observation{Health: adapter.HealthUnknown, Message: refused.Reason()}}
	}
	if err := r.store(ctx, one, sees); err != nil {
		r.Log.Warn("an observation could not be stored", "app_instance_id", one.ID, "error", err)
	}
	return !silent
}

// observation is what is known of an instance after a call to its adapter.
type observation struct {
	adapter.Observation
	answered bool // the adapter said something
	unknown  bool // namely that it does not know the instance
}

// count keeps the failures in a row of an instance's observations.
func (r *Reconciler) count(id string, failed bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !failed {
		delete(r.failures, id)
		return 0
	}
	r.failures[id]++
	return r.failures[id]
}

func (r *Reconciler) ask(ctx context.Context, one polled) (adapter.Observation, error) {
	read, err := authz.FamilyKey(one.Family, "instance.read")
	if err != nil {
		return adapter.Observation{}, err
	}
	members, err := authz.FamilyKey(one.Family, "node.read")
	if err != nil {
		return adapter.Observation{}, err
	}
	access, err := operation.IssueCallToken(ctx, r.Keys, operation.Call{
		Instance: one.ID, Keys: append(operation.LookKeys(one.NarrowCalls), read, members), Life: observeToken,
	}, r.DB.Now())
	if err != nil {
		return adapter.Observation{}, err
	}
	return r.Client.Observe(ctx, adapterclient.Target{Name: one.Adapter, URL: one.URL, Authority: one.Authority,
		Sandbox: one.Sandbox},
		// its own: nothing of the launch goes on
		string(one.ID), access.Text, adapterclient.Trace{CorrelationID: transport.NewCorrelationID(),
			About: telemetry.Context(string(one.Tenant), string(one.Project), one.App, string(one.ID))})
}

// store keeps what the adapter sees, and appends to the timeline what changed.
func (r *Reconciler) store(ctx context.Context, one polled, seen observation) error {
	said, err := lifecycle.FromWire[lifecycle.Health](string(seen.Health))
	if err != nil {
		return err
	}
	return r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
		instance, err := t.Instance.Query().Where(dbinstance.ID(one.ID)).ForUpdate().Only(ctx)
		if err != nil {
			return fmt.Errorf("lock instance %s: %w", one.ID, err)
		}
		if instance.Status != lifecycle.InstanceRunning {
			return nil
		}
		if seen.answered {
			if err := r.compare(ctx, t, instance, seen); err != nil {
				return err
			}
		}
		taken, err := r.confirmed(ctx, t, instance, seen, said)
		if err != nil || !taken {
			return err
		}
		if seen.Lost != nil {
			return wellbeing.End(ctx, t, instance, wellbeing.LostForGood(seen.Lost))
		}
		return take(ctx, t, instance, seen, said)
	})
}

// compare keeps the differences between what is seen and what is meant.
func (r *Reconciler) compare(ctx context.Context, t *tx.Tx, instance *db.Instance, seen observation) error {
	r.Stats.Observed.Add(1)
	drifted, err := storeDrift(ctx, t, instance, seen)
	if err == nil && drifted {
		t.Wake(event.InstanceTopic(instance.ID), event.ProjectTopic(instance.ProjectID))
	}
	return err
}

// take stores the health of members, of components in the app's words, and of the whole, which is at most as good as
// the members allow.
func take(ctx context.Context, t *tx.Tx, instance *db.Instance, seen observation, said lifecycle.Health) error {
	events, err := wellbeing.StoreMembers(ctx, t, instance, seen.Members)
	if err != nil {
		return err
	}
	if err := event.Append(ctx, t, instance, events...); err != nil {
		return err
	}
	if err := wellbeing.FailReported(ctx, t, instance, seen.Members); err != nil {
		return err
	}
	if err := wellbeing.StoreRoles(ctx, t, instance, seen.Roles); err != nil {
		return err
	}
	best, err := wellbeing.BoundOf(ctx, t, instance)
	if err != nil {
		return err
	}
	health, message := best.Apply(said, operation.Clip(seen.Message, maxText))
	told, err := wellbeing.Store(ctx, t, instance, best, health, message)
	if err != nil || told == nil {
		return err
	}
	return event.Append(ctx, t, instance, *told)
}
