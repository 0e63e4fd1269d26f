package meter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/usage"
	"github.com/gpuaas/app-platform/transport"
)

// Bounds of reading usage.
const (
	maxInstances = 16               // that one look takes
	atOnce       = 8                // adapters' answers waited for at once
	maxPages     = 10               // of one instance in a look
	maxNew       = 500              // sources that one look finds
	pullAgain    = 30 * time.Second // after the end of an instance's usage was reached
	pullLease    = time.Minute      // in which no other process reads the same
	pullRetry    = 5 * time.Second  // after the first failure, then twice as long each time
	pullRetryMax = 10 * time.Minute
	pullToken    = 2 * time.Minute // life of the token that a read gets
	maxFailure   = 500             // bytes of why a read failed
)

// metered is an instance whose usage is read, and where.
type metered struct {
	ID, Tenant, Project             ids.ID
	App                             string
	Cursor                          string
	Failures                        int
	Released                        bool
	Family, Adapter, URL, Authority string
	NarrowCalls, Sandbox            bool
}

// Find makes sources of instances whose apps are metered.
func (m *Meter) Find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	manifests, err := m.manifests.metered(ctx, m.DB.Worker())
	if err != nil || len(manifests) == 0 {
		return err
	}
	_, err = m.DB.Worker().Exec(ctx, `INSERT INTO usage_source (source, basis, tenant_id, project_id)
		SELECT i.id, 'APP', i.tenant_id, i.project_id FROM instance i
		WHERE i.manifest_id = ANY ($1) AND (i.released_at IS NULL OR i.released_at > now() - interval '1 day')
			AND NOT EXISTS (SELECT FROM usage_source s WHERE s.source = i.id) ORDER BY i.id LIMIT $2
			ON CONFLICT DO NOTHING`, manifests, maxNew)
	if err != nil {
		return fmt.Errorf("find instances that are metered: %w", err)
	}
	return nil
}

// Pull reads the usage of instances that are due.
func (m *Meter) Pull(ctx context.Context) error {
	due, err := m.claim(ctx)
	if err != nil {
		return err
	}
	group := errgroup.Group{}
	group.SetLimit(atOnce)
	for _, one := range due {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, pullLease)
			defer cancel()
			if err := m.pull(ctx, one); err != nil {
				return m.failed(ctx, one, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// claim takes instances that are due; no other process takes them for a while.
func (m *Meter) claim(ctx context.Context) ([]metered, error) {
	found, err := m.DB.Worker().Query(ctx, `WITH due AS (SELECT source FROM usage_source
			WHERE basis = $3 AND ended_at IS NULL AND due_at <= now() ORDER BY due_at, source LIMIT $1 FOR UPDATE SKIP LOCKED),
		taken AS (UPDATE usage_source s SET due_at = now() + $2 * interval '1 second' FROM due WHERE s.source = due.source
		RETURNING s.*)
		SELECT i.id, i.tenant_id, i.project_id, i.app_slug, s.cursor, s.failures, i.released_at IS NOT NULL, i.permission_family, a.name, a.url, a.authority,
		a.narrow_calls, a.project_id IS NOT NULL
		FROM taken s JOIN instance i ON i.id = s.source JOIN adapter a ON a.name
		= i.runtime_backend`, maxInstances, pullLease.Seconds(),
		metering.App)
	if err != nil {
		return nil, fmt.Errorf("claim usage: %w", err)
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[metered])
}

// pull reads an instance's usage page by page, each of which is committed with its cursor.
func (m *Meter) pull(ctx context.Context, one metered) error {
	ctx, span := telemetry.Begin(ctx, "usage", attribute.String("app_instance_id", string(one.ID)),
		attribute.String("adapter", one.Adapter))
	defer span.End()
	for range maxPages {
		page, err := m.page(ctx, one)
		if refused, is := adapterclient.As(err); is && refused.Kind == adapterclient.Missing && one.Released {
			return m.end(ctx, one) // its adapter has forgotten it
		}
		if err != nil {
			return err
		}
		if len(page.Records) == 0 && one.Released {
			return m.end(ctx, one)
		}
		if len(page.Records) == 0 {
			return m.again(ctx, one, pullAgain)
		}
		moved, err := m.take(ctx, one, page)
		if err != nil || !moved {
			return err
		}
		one.Cursor = page.Cursor
	}
	return m.again(ctx, one, 0)
}

// page reads the page after the cursor.
func (m *Meter) page(ctx context.Context, one metered) (*adapterclient.UsagePage, error) {
	read, err := authz.FamilyKey(one.Family, "instance.read")
	if err != nil {
		return nil, err
	}
	members, err := authz.FamilyKey(one.Family, "node.read")
	if err != nil {
		return nil, err
	}
	access, err := operation.IssueCallToken(ctx, m.Keys, operation.Call{
		Instance: one.ID, Keys: append(operation.LookKeys(one.NarrowCalls), read, members), Life: pullToken,
	}, m.DB.Now())
	if err != nil {
		return nil, err
	}
	return m.Client.Usage(ctx, adapterclient.Target{Name: one.Adapter, URL: one.URL, Authority: one.Authority,
		Sandbox: one.Sandbox}, string(one.ID), one.Cursor, access.Text,
		adapterclient.Trace{CorrelationID: transport.NewCorrelationID(),
			About: telemetry.Context(string(one.Tenant), string(one.Project), one.App, string(one.ID))})
}

// take records a page and moves the cursor, unless another process has moved it meanwhile.
func (m *Meter) take(ctx context.Context, one metered, page *adapterclient.UsagePage) (moved bool, err error) {
	var taken *usage.Taken
	err = m.DB.As(ctx, m.actor, func(ctx context.Context, t *tx.Tx) error {
		tag, err := t.Exec(ctx, `UPDATE usage_source SET cursor = $3 WHERE source = $1 AND cursor = $2
			AND ended_at IS NULL`,
			one.ID, one.Cursor, page.Cursor)
		if err != nil {
			return fmt.Errorf("move the cursor of %s: %w", one.ID, err)
		}
		if moved = tag.RowsAffected() == 1; !moved {
			return nil
		}
		instance, err := m.manifests.dimensions.Load(ctx, t, one.ID)
		if err != nil || instance == nil {
			return err
		}
		incoming := make([]usage.Incoming, len(page.Records))
		for i, raw := range page.Records {
			incoming[i] = usage.Read(raw)
		}
		taken, err = usage.Take(ctx, t, instance, incoming)
		return err
	})
	if err == nil && taken != nil {
		m.Stats.App.Add(int64(taken.Recorded))
		m.Stats.Quarantined.Add(int64(taken.Fresh))
		if taken.Fresh > 0 {
			m.Log.Warn("usage records were put in quarantine; usageQuarantine lists them", "app_instance_id", one.ID,
				"records", taken.Fresh)
		}
	}
	return moved, err
}

// again notes that an instance's usage was read to its present end, and when it is read again.
func (m *Meter) again(ctx context.Context, one metered, pause time.Duration) error {
	_, err := m.DB.Worker().Exec(ctx, `UPDATE usage_source SET due_at = now() + $2 * interval '1 second', failures = 0,
		last_error = '',
		recorded_to = CASE WHEN $2 > 0 THEN now() ELSE recorded_to END WHERE source = $1`, one.ID, pause.Seconds())
	return err
}

// end notes that nothing comes of an instance any more.
func (m *Meter) end(ctx context.Context, one metered) error {
	_, err := m.DB.Worker().Exec(ctx, `UPDATE usage_source SET ended_at = now(), recorded_to = now(), last_error = '',
		failures = 0 WHERE source = $1`, one.ID)
	return err
}

// failed notes why a read failed, and when it is tried again.
func (m *Meter) failed(ctx context.Context, one metered, why error) error {
	if ctx.Err() == context.Canceled {
		return nil
	}
	m.Stats.Failures.Add(1)
	pause := min(pullRetry<<min(one.Failures, 10), pullRetryMax)
	text := why.Error()
	if refused, is := adapterclient.As(why); is {
		text = refused.Reason()
	}
	_, err := m.DB.Worker().Exec(context.WithoutCancel(ctx), `UPDATE usage_source SET failures = failures + 1,
		last_error = $2,
		due_at = now() + $3 * interval '1 second' WHERE source = $1`, one.ID, operation.Clip(text,
		maxFailure), pause.Seconds())
	return err
}

// manifests knows which of them are metered.
type manifests struct {
	dimensions usage.Dimensions
	mu         sync.Mutex
	metering   []ids.ID        // those with a dimension
	seen       map[ids.ID]bool // all that were read
}

// metered returns the manifests that declare a usage dimension.
func (m *manifests) metered(ctx context.Context, pool *pgxpool.Pool) ([]ids.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = make(map[ids.ID]bool)
	}
	found, err := pool.Query(ctx, `SELECT id, document FROM manifest WHERE id <> ALL ($1) ORDER BY id LIMIT $2`,
		slices.AppendSeq([]ids.ID{}, maps.Keys(m.seen)), maxNew) // NULL would be no list
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var id ids.ID
	var document []byte
	_, err = pgx.ForEachRow(found, []any{&id, &document}, func() error {
		m.seen[id] = true
		if len(usage.Of(document)) > 0 {
			m.metering = append(m.metering, id)
		}
		return nil
	})
	return m.metering, err
}
