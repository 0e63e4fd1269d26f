package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/migrations"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// The bar of row-level security: how much longer the statements of a detail query take under it.
const (
	rlsBar   = 1.25
	rlsAsked = 400 // a round
)

// statement is one of a round trip's, with its arguments.
type statement struct {
	sql  string
	args []any
}

// recorder is a tracer that keeps the statements of the last round trip.
type recorder struct {
	mu   sync.Mutex
	sent []statement
}

// TraceQueryStart implements pgx.QueryTracer; single queries are not kept.
func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
	for _, queued := range data.Batch.QueuedQueries {
		r.sent = append(r.sent, statement{queued.SQL, queued.Arguments})
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// measureRLS runs the round trip of a detail query, statement by statement what the service sends, as the login role
// that policies bind to the caller's scope and as one for which every policy is true. Both enter as the same person and
// both must answer the same rows, so that what differs is row-level security.
func measureRLS(ctx context.Context, b *bench) error {
	callers, err := b.Set.Callers(ctx, min(b.Plan.Callers, 16))
	if err != nil {
		return err
	}
	trips, err := recordDetails(ctx, b, callers)
	if err != nil {
		return err
	}
	var sides [2]*pgx.Conn
	for i, role := range []string{"app_api", "app_operator"} {
		address, err := migrations.RoleDSN(b.Set.DSN, role)
		if err != nil {
			return err
		}
		if sides[i], err = pgx.Connect(ctx, address); err != nil {
			return fmt.Errorf("connect as %s: %w", role, err)
		}
		defer func() { _ = sides[i].Close(context.WithoutCancel(ctx)) }()
	}
	var whole, bare kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		with, without, err := rlsRound(ctx, sides, trips, oneTrip)
		if err != nil {
			return err
		}
		bareWith, bareWithout, err := rlsRound(ctx, sides, trips, entered)
		if err != nil {
			return err
		}
		if round > 0 { // the first warms up
			whole.Platform, whole.Other = append(whole.Platform, float64(with)), append(whole.Other, float64(without))
			bare.Platform, bare.Other = append(bare.Platform, float64(bareWith)),
				append(bare.Other, float64(bareWithout))
		}
	}
	b.Sheet.AtMost("detail query under row-level security, beside none", micros(kit.Median(whole.Platform)),
		micros(kit.Median(whole.Other)), whole.Ratio(), rlsBar)
	b.Sheet.Told("its statements by themselves", micros(kit.Median(bare.Platform)), micros(kit.Median(bare.Other)),
		bare.Ratio())
	return nil
}

// rlsRound asks both sides in turns and answers the median of each. Both must answer the same rows.
func rlsRound(ctx context.Context, sides [2]*pgx.Conn, trips [][]statement,
	ask func(context.Context, *pgx.Conn, []statement) (time.Duration, string, error),
) (with, without time.Duration, err error) {
	var took [2][]time.Duration
	for n := range rlsAsked {
		var answers [2]string
		for i := range sides {
			spent, answer, err := ask(ctx, sides[i], trips[n%len(trips)])
			if err != nil {
				return 0, 0, err
			}
			took[i], answers[i] = append(took[i], spent), answer
		}
		if answers[0] != answers[1] || answers[0] == "" {
			return 0, 0, errors.New("the two sides answer different rows")
		}
	}
	return kit.Median(took[0]), kit.Median(took[1]), nil
}

// oneTrip times a whole detail query: the caller enters, which answers the time, and the statements run in one round
// trip.
func oneTrip(ctx context.Context, conn *pgx.Conn, trip []statement) (time.Duration, string, error) {
	began := time.Now()
	answers, err := send(ctx, conn, trip)
	took := time.Since(began)
	if err != nil {
		return 0, "", err
	}
	return took, strings.Join(answers[1:], ""), nil
}

// entered times the statements alone, in a transaction whose caller has entered before.
func entered(ctx context.Context, conn *pgx.Conn, trip []statement) (took time.Duration, answer string, err error) {
	begun, err := conn.Begin(ctx)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, begun.Rollback(ctx)) }()
	if _, err := send(ctx, conn, trip[:1]); err != nil {
		return 0, "", err
	}
	began := time.Now()
	answers, err := send(ctx, conn, trip[1:])
	return time.Since(began), strings.Join(answers, ""), err
}

// send pipelines statements and answers the rows of each, as they came.
func send(ctx context.Context, conn *pgx.Conn, trip []statement) ([]string, error) {
	batch, answers := &pgx.Batch{}, make([]string, len(trip))
	for i, one := range trip {
		batch.Queue(one.sql, one.args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				for _, value := range rows.RawValues() {
					answers[i] += string(value)
				}
			}
			return rows.Err()
		})
	}
	return answers, conn.SendBatch(ctx, batch).Close()
}

// recordDetails asks the service for details as each of the callers and keeps what it sent.
func recordDetails(ctx context.Context, b *bench, callers []dataset.Caller) (trips [][]statement, err error) {
	recorded := &recorder{}
	db, err := tx.Open(ctx, b.Set.DSN, tx.Options{Connections: 1, Tracer: recorded})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		return nil, err
	}
	service := &instance.Service{DB: db}
	want := instance.Want{Members: &page.Args{First: 50}, Events: &page.Args{First: 20}, LastOperation: true,
		Steps: true}
	for _, who := range callers {
		credential, err := tx.ParseCredential(who.Token, ring, db.Now())
		if err != nil {
			return nil, err
		}
		mine := b.Set.Size.InstancesOf(who.Number)
		if _, err := service.Get(tx.WithCredential(ctx, credential), dataset.Instance(mine[rand.IntN(len(mine))]),
			want); err != nil {
			return nil, err
		}
		trips = append(trips, slices.Clone(recorded.sent))
	}
	return trips, nil
}

func micros(nanoseconds float64) string { return fmt.Sprintf("%.0f µs", nanoseconds/1000) }
