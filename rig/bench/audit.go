package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
)

// The bars of the audit: what it adds to a verb, and what a flood of refusals leaves of the throughput of
// what is allowed.
const (
	auditBar      = 1
	denialsBar    = 0.5
	allowedAtOnce = 8
	deniedAtOnce  = 4
	mostADenial   = 4_096 // rows of one write
	denialWrites  = 200 * time.Millisecond
)

// counted is a tracer that counts statements, and those that write the audit.
type counted struct{ all, audits atomic.Int64 }

func (c *counted) note(sql string) {
	c.all.Add(1)
	if strings.Contains(sql, "INTO audit_entry") {
		c.audits.Add(1)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	c.note(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *counted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, queued := range data.Batch.QueuedQueries {
		c.note(queued.SQL)
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (c *counted) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (c *counted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// entering is ctx as a caller of the data set.
func entering(ctx context.Context, db *tx.DB, ring *token.Keyring, who dataset.Caller) (context.Context, error) {
	credential, err := tx.ParseCredential(who.Token, ring, db.Now())
	return tx.WithCredential(ctx, credential), err
}

// measureAudit counts the statements of some verbs, and how many of them are the audit's.
func measureAudit(ctx context.Context, b *bench) error {
	counts := &counted{}
	db, err := tx.Open(ctx, b.Set.DSN, tx.Options{Connections: 2, Tracer: counts})
	if err != nil {
		return err
	}
	defer db.Close()
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		return err
	}
	callers, err := b.Set.Callers(ctx, 1)
	if err != nil {
		return err
	}
	if ctx, err = entering(ctx, db, ring, callers[0]); err != nil {
		return err
	}
	actor, err := db.Read(ctx)
	if err != nil {
		return err
	}
	for _, verb := range audited(b, db, callers, actor.ID) {
		counts.all.Store(0)
		counts.audits.Store(0)
		if err := verb.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", verb.name, err)
		}
		audits := counts.audits.Load()
		b.Sheet.Within("statements of "+verb.name+", and the audit's of them",
			fmt.Sprintf("%d, %d", counts.all.Load(), audits), "the audit's = 1", audits == auditBar)
	}
	return endMade(ctx, b)
}

type verb struct {
	name string
	run  func(context.Context) error
}

// audited are the verbs that are looked at: one that makes much, one that makes a row, one of a member.
func audited(b *bench, db *tx.DB, callers []dataset.Caller, self ids.ID) []verb {
	project := dataset.Project(callers[0].Number)
	return []verb{
		{"launchInstance", func(ctx context.Context) error {
			free, err := b.Set.Allocations(ctx, callers, 1)
			if err != nil {
				return err
			}
			_, err = (&instance.Service{DB: db}).Launch(ctx,
				instance.LaunchInput{ProjectID: project, AppSlug: dataset.App, Name: "audited", DeadlineSeconds: 600,
					IdempotencyKey: "audited",
					AllocationIDs:  []ids.ID{free[0].Allocation}})
			return err
		}},
		{"grantRole", func(ctx context.Context) error {
			soon := time.Now().Add(time.Minute)
			_, err := (&identity.Service{DB: db}).GrantRole(ctx,
				identity.GrantRoleInput{SubjectID: self, Role: "project_viewer", ProjectID: &project, ExpiresAt: &soon})
			return err
		}},
		{"drainMember", func(ctx context.Context) error {
			var one ids.ID
			err := b.Set.Admin.QueryRow(ctx, `SELECT m.id FROM member m JOIN instance i ON i.id = m.instance_id
				WHERE i.project_id = $1 AND i.status = 'RUNNING'
				AND m.status = 'ACTIVE' AND NOT EXISTS (SELECT FROM operation o WHERE o.instance_id = i.id AND o.ended_at IS NULL)
				ORDER BY m.id LIMIT 1`, project).Scan(&one)
			if err != nil {
				return err
			}
			_, err = (&member.Service{DB: db}).Drain(ctx,
				member.Input{MemberID: one, DeadlineSeconds: 600, IdempotencyKey: "audited"})
			return err
		}},
	}
}

// endMade ends the operations that a subject created, so that no other subject meets them.
func endMade(ctx context.Context, b *bench) error {
	begun, err := b.Set.Admin.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = begun.Rollback(context.WithoutCancel(ctx)) }()
	for _, statement := range []string{`SET LOCAL session_replication_role = replica`,
		`UPDATE operation SET state = 'CANCELED', ended_at = now() WHERE ended_at IS NULL
			AND created_at > now() - interval '1 minute'`} {
		if _, err := begun.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return begun.Commit(ctx)
}

// measureDenials reads details as people who may, alone and beside others who try what they may not, each time
// on another object, so that no two refusals are one row.
func measureDenials(ctx context.Context, b *bench) error {
	denials := audit.NewDenials()
	db, err := tx.Open(ctx, b.Set.DSN, tx.Options{Connections: b.Plan.Pool, Denials: denials})
	if err != nil {
		return err
	}
	defer db.Close()
	writing, stop := context.WithCancel(ctx)
	wrote := make(chan error, 1)
	go func() { wrote <- denials.Run(writing, db.Worker(), b.Log) }()
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		stop()
		return err
	}
	callers, err := b.Set.Callers(ctx, allowedAtOnce+deniedAtOnce)
	if err != nil {
		stop()
		return err
	}
	f := &flood{b: b, db: db, ring: ring, callers: callers}
	var beside kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		alone, err := f.round(ctx, 0)
		if err != nil {
			stop()
			return err
		}
		flooded, err := f.round(ctx, deniedAtOnce)
		if err != nil {
			stop()
			return err
		}
		if round > 0 { // the first warms up
			beside.Platform, beside.Other = append(beside.Platform, flooded), append(beside.Other, alone)
		}
	}
	stop()
	if err := <-wrote; err != nil {
		return err
	}
	var rows int64
	if err := b.Set.Admin.QueryRow(ctx, `SELECT count(*) FROM audit_entry WHERE NOT allowed`).Scan(&rows); err != nil {
		return err
	}
	name := fmt.Sprintf("detail queries of %d callers beside a flood of refusals of %d, and without", allowedAtOnce,
		deniedAtOnce)
	b.Sheet.AtLeast(name, fmt.Sprintf("%.0f/s", kit.Median(beside.Platform)),
		fmt.Sprintf("%.0f/s", kit.Median(beside.Other)), beside.Ratio(), denialsBar)
	seconds := b.Plan.Span.Seconds() * float64(b.Plan.Rounds+1)
	b.Sheet.Told("refusals of the flood", fmt.Sprintf("%.0f/s", float64(f.denied.Load())/seconds), "", 0)
	most := int64(seconds/denialWrites.Seconds()+2) * mostADenial
	b.Sheet.Within("rows that the flood wrote", fmt.Sprint(rows), fmt.Sprintf("≤ %d, its bound", most), rows > 0 &&
		rows <= most && rows <= f.denied.Load())
	return nil
}

// flood is callers that read what they may read, and others whose requests are refused.
type flood struct {
	b       *bench
	db      *tx.DB
	ring    *token.Keyring
	callers []dataset.Caller
	denied  atomic.Int64
}

// round returns how many allowed requests a second were answered beside so many callers that are refused.
func (f *flood) round(ctx context.Context, refused int) (float64, error) {
	bounded, cancel := context.WithTimeout(ctx, f.b.Plan.Span)
	defer cancel()
	var running sync.WaitGroup
	var allowed atomic.Int64
	failures := make(chan error, len(f.callers))
	for i, who := range f.callers[:allowedAtOnce+refused] {
		as, err := entering(ctx, f.db, f.ring, who)
		if err != nil {
			return 0, err
		}
		ask := f.detail
		count := &allowed
		if i >= allowedAtOnce {
			ask, count = f.refused, &f.denied
		}
		running.Go(func() {
			for n := 0; bounded.Err() == nil; n++ {
				if err := ask(as, who, n); err != nil {
					failures <- err
					return
				}
				count.Add(1)
			}
		})
	}
	running.Wait()
	select {
	case err := <-failures:
		return 0, err
	default:
		return float64(allowed.Load()) / f.b.Plan.Span.Seconds(), nil
	}
}

func (f *flood) detail(ctx context.Context, who dataset.Caller, n int) error {
	mine := f.b.Set.Size.InstancesOf(who.Number)
	want := instance.Want{Members: &page.Args{First: 50}, Events: &page.Args{First: 20}, LastOperation: true,
		Steps: true}
	_, err := (&instance.Service{DB: f.db}).Get(ctx, dataset.Instance(mine[n%len(mine)]), want)
	return err
}

// refused tries to stop an operation that there is not.
func (f *flood) refused(ctx context.Context, _ dataset.Caller, _ int) error {
	_, err := operation.Cancel(ctx, f.db, ids.New(ids.Operation), "")
	if !fault.Is(err, fault.NotFound) {
		return errors.Join(errors.New("a request that must be refused was not"), err)
	}
	return nil
}
