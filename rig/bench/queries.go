package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// The bars of the queries: requests a second against the hand-written handler's.
const (
	detailBar = 0.5
	listBar   = 0.6
)

//go:embed detail.graphql
var detailDocument string

//go:embed list.graphql
var listDocument string

// query is one query, asked of both sides.
type query struct {
	name, document, path string
	bar                  float64
	everybody            bool // whoever is logged in may ask
	// id chooses what the n-th request is for.
	id func(who dataset.Caller, n int) string
}

func measureDetail(ctx context.Context, b *bench) error {
	return b.query(ctx, query{name: "detail", document: detailDocument, path: "/instances/%s", bar: detailBar,
		id: func(who dataset.Caller, _ int) string {
			mine := b.set.Size.InstancesOf(who.Number)
			return string(dataset.Instance(mine[rand.IntN(len(mine))]))
		}})
}

func measureList(ctx context.Context, b *bench) error {
	return b.query(ctx, query{name: "first 50 list", document: listDocument, path: "/projects/%s/instances", bar: listBar,
		id: func(who dataset.Caller, _ int) string { return string(dataset.Project(who.Number)) }})
}

// query lets both sides answer in turns.
func (b *bench) query(ctx context.Context, q query) error {
	callers, err := b.set.Callers(ctx, b.plan.callers)
	if err != nil {
		return err
	}
	ours, err := b.serve(ctx, platform.Role, false)
	if err != nil {
		return err
	}
	defer ours.Stop()
	theirs, err := b.serve(ctx, reference.Role, false)
	if err != nil {
		return err
	}
	defer theirs.Stop()
	size, err := b.sameAnswers(q, callers, ours, theirs)
	if err != nil {
		return err
	}
	var rates pairs
	var p99, theirP99 []time.Duration
	for round := range b.plan.rounds + 1 {
		mine, err := b.ask(ctx, ours, q, callers, q.graphql)
		if err != nil {
			return fmt.Errorf("platform: %w", err)
		}
		other, err := b.ask(ctx, theirs, q, callers, q.plain)
		if err != nil {
			return fmt.Errorf("reference: %w", err)
		}
		b.log.Info("round", "of", q.name, "platform", int(mine.Rate()), "reference", int(other.Rate()), "warm-up", round == 0)
		if round > 0 {
			rates.platform, rates.other = append(rates.platform, mine.Rate()), append(rates.other, other.Rate())
			p99, theirP99 = append(p99, mine.P99), append(theirP99, other.P99)
		}
	}
	if err := b.profiled(ours, q.name, func() error { _, err := b.ask(ctx, ours, q, callers, q.graphql); return err }); err != nil {
		return err
	}
	b.sheet.atLeast(fmt.Sprintf("%s, requests/s at %d connections", q.name, b.plan.connections),
		fmt.Sprintf("%.0f/s", median(rates.platform)), fmt.Sprintf("%.0f/s", median(rates.other)), rates.ratio(), q.bar)
	b.sheet.told(q.name+", p99 under that load", millis(median(p99)), millis(median(theirP99)), float64(median(p99))/float64(median(theirP99)))
	b.sheet.told(q.name+", size of an answer", kib(float64(size)), "", 0)
	return nil
}

func (b *bench) ask(ctx context.Context, s *server, q query, callers []dataset.Caller, request func(who dataset.Caller, id string) []byte) (load.Result, error) {
	return load.HTTP{Address: s.address, Connections: b.plan.connections, Requests: func(connection, n int) []byte {
		who := callers[connection%len(callers)]
		return request(who, q.id(who, n))
	}}.Run(ctx, b.plan.span)
}

// graphql is a request as a client of the API sends it.
func (q query) graphql(who dataset.Caller, id string) []byte {
	body, err := json.Marshal(map[string]any{"query": q.document, "variables": map[string]string{"id": id}})
	if err != nil {
		panic(err) // strings always encode
	}
	return fmt.Appendf(nil, "POST /graphql HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s", who.Token, len(body), body)
}

// plain is the request to the hand-written handler.
func (q query) plain(who dataset.Caller, id string) []byte {
	return fmt.Appendf(nil, "GET "+q.path+" HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n\r\n", id, who.Token)
}

// sameAnswers proves that both sides say the same, up to white space and the order of keys, and
// answers how long an answer of the platform is. A stranger must get nothing.
func (b *bench) sameAnswers(q query, callers []dataset.Caller, ours, theirs *server) (size int, err error) {
	for n, who := range callers {
		id := q.id(who, n)
		mine, err := load.Once(ours.address, q.graphql(who, id))
		if err != nil {
			return 0, fmt.Errorf("platform: %w", err)
		}
		other, err := load.Once(theirs.address, q.plain(who, id))
		if err != nil {
			return 0, fmt.Errorf("reference: %w", err)
		}
		if err := same(mine, other); err != nil {
			return 0, err
		}
		size = len(mine)
	}
	if q.everybody {
		return size, nil
	}
	stranger := callers[len(callers)-1]
	if _, err := load.Once(theirs.address, q.plain(stranger, q.id(callers[0], 0))); err == nil {
		return 0, fmt.Errorf("the reference answers strangers")
	}
	return size, nil
}

func same(mine, other []byte) error {
	var a, b any
	if err := json.Unmarshal(mine, &a); err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	if err := json.Unmarshal(other, &b); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the answers differ:\nplatform:  %.2000s\nreference: %.2000s", mine, other)
	}
	return nil
}
