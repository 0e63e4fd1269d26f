package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/reference"
	"github.com/gpuaas/app-platform/rig/bench/reference/frozen"
)

// The bars of the queries: requests a second against the hand-written handler's.
const (
	detailBar = 0.5
	listBar   = 0.6
	// frozenBar is that of both, beside the handlers and the scope of commit a3d4938.
	frozenBar = 2.2
)

//go:embed detail.graphql
var detailDocument string

//go:embed list.graphql
var listDocument string

// query is one query, sent to all sides.
type query struct {
	name, document, path string
	bar                  float64
	everybody            bool // every person who is logged in may ask
	frozen               bool // the frozen reference answers it too
	// id chooses what the n-th request is for.
	id func(who dataset.Caller, n int) string
}

func measureDetail(ctx context.Context, b *bench) error {
	return b.query(ctx, query{name: "detail", document: detailDocument, path: "/instances/%s", bar: detailBar,
		frozen: true,
		id: func(who dataset.Caller, _ int) string {
			mine := b.Set.Size.InstancesOf(who.Number)
			return string(dataset.Instance(mine[rand.IntN(len(mine))]))
		}})
}

func measureList(ctx context.Context, b *bench) error {
	return b.query(ctx, query{name: "first 50 list", document: listDocument, path: "/projects/%s/instances", bar: listBar,
		frozen: true,
		id:     func(who dataset.Caller, _ int) string { return string(dataset.Project(who.Number)) }})
}

// query lets the platform, the reference and the frozen one answer in turns.
func (b *bench) query(ctx context.Context, q query) error {
	callers, err := b.Set.Callers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	sides := []side{{name: "platform", role: platform.Role, request: q.graphql},
		{name: "reference", role: reference.Role, request: q.plain}}
	if q.frozen {
		sides = append(sides, side{name: "frozen reference", role: frozen.Role, request: q.plain})
	}
	stop, err := b.open(ctx, sides)
	defer stop()
	if err != nil {
		return err
	}
	size, err := b.sameAnswers(q, callers, sides)
	if err != nil {
		return err
	}
	came, err := b.turns(ctx, q, callers, sides)
	if err != nil {
		return err
	}
	if err := b.Profiled(sides[0].server, q.name, func() error {
		_, err := b.ask(ctx, q, callers, sides[0])
		return err
	}); err != nil {
		return err
	}
	b.note(q, came)
	b.Sheet.Told(q.name+", size of an answer", kit.Kib(float64(size)), "", 0)
	return nil
}

// note writes what the sides came to into the sheet.
func (b *bench) note(q query, came []came) {
	rates, p99 := came[0].beside(came[1])
	b.Sheet.AtLeast(fmt.Sprintf("%s, requests/s at %d connections", q.name, b.Plan.Connections), came[0].rate(),
		came[1].rate(), rates, q.bar)
	b.Sheet.Told(q.name+", p99 under that load", came[0].p99(), came[1].p99(), p99)
	if !q.frozen {
		return
	}
	rates, p99 = came[0].beside(came[2])
	b.Sheet.AtLeast(q.name+", requests/s beside the frozen reference", came[0].rate(), came[2].rate(), rates, frozenBar)
	b.Sheet.AtMost(q.name+", p99 beside the frozen reference", came[0].p99(), came[2].p99(), p99, 1)
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

// sameAnswers proves that all sides say the same, up to white space and the order of keys, and returns the length of an
// answer of the platform, in bytes. A stranger must get nothing.
func (b *bench) sameAnswers(q query, callers []dataset.Caller, sides []side) (size int, err error) {
	for n, who := range callers {
		id := q.id(who, n)
		mine, err := sides[0].once(who, id)
		if err != nil {
			return 0, err
		}
		for _, other := range sides[1:] {
			answer, err := other.once(who, id)
			if err != nil {
				return 0, err
			}
			if err := same(mine, answer); err != nil {
				return 0, fmt.Errorf("%s: %w", other.name, err)
			}
		}
		size = len(mine)
	}
	if q.everybody {
		return size, nil
	}
	stranger := callers[len(callers)-1]
	for _, other := range sides[1:] {
		if _, err := other.once(stranger, q.id(callers[0], 0)); err == nil {
			return 0, fmt.Errorf("%s answers strangers", other.name)
		}
	}
	return size, nil
}

func same(mine, other []byte) error {
	var a, b any
	if err := json.Unmarshal(mine, &a); err != nil {
		return fmt.Errorf("platform: %w", err)
	}
	if err := json.Unmarshal(other, &b); err != nil {
		return fmt.Errorf("the other side: %w", err)
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the answers differ:\nplatform: %.2000s\nother:    %.2000s", mine, other)
	}
	return nil
}
