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
	"github.com/gpuaas/app-platform/rig/bench/kit"
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
			mine := b.Set.Size.InstancesOf(who.Number)
			return string(dataset.Instance(mine[rand.IntN(len(mine))]))
		}})
}

func measureList(ctx context.Context, b *bench) error {
	return b.query(ctx, query{name: "first 50 list", document: listDocument, path: "/projects/%s/instances", bar: listBar,
		id: func(who dataset.Caller, _ int) string { return string(dataset.Project(who.Number)) }})
}

// query lets both sides answer in turns.
func (b *bench) query(ctx context.Context, q query) error {
	callers, err := b.Set.Callers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	ours, err := b.Serve(ctx, platform.Role, false)
	if err != nil {
		return err
	}
	defer ours.Stop()
	theirs, err := b.Serve(ctx, reference.Role, false)
	if err != nil {
		return err
	}
	defer theirs.Stop()
	size, err := b.sameAnswers(q, callers, ours, theirs)
	if err != nil {
		return err
	}
	var rates kit.Pairs
	var p99, theirP99 []time.Duration
	for round := range b.Plan.Rounds + 1 {
		mine, err := b.ask(ctx, ours, q, callers, q.graphql)
		if err != nil {
			return fmt.Errorf("platform: %w", err)
		}
		other, err := b.ask(ctx, theirs, q, callers, q.plain)
		if err != nil {
			return fmt.Errorf("reference: %w", err)
		}
		b.Log.Info("round", "of", q.name, "platform", int(mine.Rate()), "reference", int(other.Rate()), "warm-up", round == 0)
		if round > 0 {
			rates.Platform, rates.Other = append(rates.Platform, mine.Rate()), append(rates.Other, other.Rate())
			p99, theirP99 = append(p99, mine.P99), append(theirP99, other.P99)
		}
	}
	if err := b.Profiled(ours, q.name, func() error {
		_, err := b.ask(ctx, ours, q, callers, q.graphql)
		return err
	}); err != nil {
		return err
	}
	b.Sheet.AtLeast(fmt.Sprintf("%s, requests/s at %d connections", q.name, b.Plan.Connections),
		fmt.Sprintf("%.0f/s", kit.Median(rates.Platform)), fmt.Sprintf("%.0f/s", kit.Median(rates.Other)), rates.Ratio(),
		q.bar)
	b.Sheet.Told(q.name+", p99 under that load", kit.Millis(kit.Median(p99)), kit.Millis(kit.Median(theirP99)),
		float64(kit.Median(p99))/float64(kit.Median(theirP99)))
	b.Sheet.Told(q.name+", size of an answer", kit.Kib(float64(size)), "", 0)
	return nil
}

func (b *bench) ask(ctx context.Context, s *kit.Server, q query, callers []dataset.Caller,
	request func(who dataset.Caller, id string) []byte) (load.Result, error) {
	return load.HTTP{Address: s.Address, Connections: b.Plan.Connections, Requests: func(connection, n int) []byte {
		who := callers[connection%len(callers)]
		return request(who, q.id(who, n))
	}}.Run(ctx, b.Plan.Span)
}

// graphql is a request as a client of the API sends it.
func (q query) graphql(who dataset.Caller, id string) []byte {
	body, err := json.Marshal(map[string]any{"query": q.document, "variables": map[string]string{"id": id}})
	if err != nil {
		panic(err) // strings always encode
	}
	return fmt.Appendf(nil,
		"POST /graphql HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s", who.Token, len(body), body)
}

// plain is the request to the hand-written handler.
func (q query) plain(who dataset.Caller, id string) []byte {
	return fmt.Appendf(nil, "GET "+q.path+
		" HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n\r\n", id, who.Token)
}

// sameAnswers proves that both sides say the same, up to white space and the order of keys, and
// answers how long an answer of the platform is. A stranger must get nothing.
func (b *bench) sameAnswers(q query, callers []dataset.Caller, ours, theirs *kit.Server) (size int, err error) {
	for n, who := range callers {
		id := q.id(who, n)
		mine, err := load.Once(ours.Address, q.graphql(who, id))
		if err != nil {
			return 0, fmt.Errorf("platform: %w", err)
		}
		other, err := load.Once(theirs.Address, q.plain(who, id))
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
	if _, err := load.Once(theirs.Address, q.plain(stranger, q.id(callers[0], 0))); err == nil {
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
