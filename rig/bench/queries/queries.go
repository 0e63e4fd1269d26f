// Package queries measures what people read: an instance's detail and a project's list, beside handlers written by
// hand, the frozen ones among them, and beside other software; the catalog's page and artifacts.
package queries

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

// warm is how many rounds warm a platform up that keeps answers.
const warm = 20

// writing is how many of a hundred requests write, where the load writes.
const writing = 5

//go:embed detail.graphql
var detailDocument string

//go:embed list.graphql
var listDocument string

//go:embed repair.graphql
var repairDocument string

// Subjects are what this package measures, in order.
var Subjects = []kit.Subject{
	{Name: "detail", Measure: measureDetail},
	{Name: "list", Measure: measureList},
	{Name: "peers", Measure: measurePeers},
	{Name: "catalog", Measure: measureCatalog},
}

// bench is one run.
type bench struct{ *kit.Bench }

// query is one query, sent to all sides.
type query struct {
	name, document, path string
	bar                  float64
	everybody            bool // every person who is logged in may ask
	writes               bool // some requests change an instance instead
	frozen               bool // the frozen reference answers it too
	// pick chooses what a request is for.
	pick func() target
}

// target is what a request is for: who sends it, what it reads, and the instance that it changes if it writes.
type target struct {
	who          dataset.Caller
	id, instance string
}

// The loads of detail and list: each request is for any of all instances, or its project, sent by a caller that may
// read it.
func measureDetail(ctx context.Context, with *kit.Bench) error {
	b := bench{with}
	readers, err := b.Set.Readers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	return b.query(ctx, detailOf(readers))
}

func detailOf(readers *dataset.Readers) query {
	return query{name: "detail", document: detailDocument, path: "/instances/%s", bar: detailBar, writes: true,
		frozen: true, pick: func() target {
			instance, who := readers.Pick()
			return target{who, string(instance), string(instance)}
		}}
}

func measureList(ctx context.Context, with *kit.Bench) error {
	b := bench{with}
	readers, err := b.Set.Readers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	return b.query(ctx, listOf(readers))
}

func listOf(readers *dataset.Readers) query {
	return query{name: "first 50 list", document: listDocument, path: "/projects/%s/instances", bar: listBar,
		writes: true, frozen: true, pick: func() target {
			instance, who := readers.Pick()
			return target{who, string(dataset.Project(who.Number)), string(instance)}
		}}
}

// query lets the platform, the reference and the frozen one answer in turns.
func (b bench) query(ctx context.Context, q query) error {
	sides := []side{platformSide(q), {name: "reference", role: reference.Role, read: q.plain, write: plainRepair}}
	if q.frozen {
		sides = append(sides, side{name: "frozen reference", role: frozen.Role, read: q.plain,
			write: plainRepair}, b.cold(q))
	}
	stop, err := b.open(ctx, sides)
	defer stop()
	if err != nil {
		return err
	}
	size, err := b.sameAnswers(q, sides)
	if err != nil {
		return err
	}
	came, err := b.turns(ctx, q, sides)
	if err != nil {
		return err
	}
	if err := b.Profiled(sides[0].server, q.name, func() error {
		_, err := b.ask(ctx, q, sides[0])
		return err
	}); err != nil {
		return err
	}
	b.note(q, came)
	b.Sheet.Told(q.name+", size of an answer", kit.Kib(float64(size)), "", 0)
	return nil
}

func platformSide(q query) side {
	return side{name: "platform", role: platform.Role, read: q.graphql, write: graphqlRepair, warm: warm}
}

// cold is the platform without kept answers.
func (b bench) cold(q query) side {
	config := b.Platform()
	config.KeepNothing = true
	return side{name: "platform, nothing kept", role: platform.Role, read: q.graphql, write: graphqlRepair,
		config: config}
}

// note writes what the sides came to into the sheet.
func (b bench) note(q query, came []came) {
	rates, p99 := came[0].beside(came[1])
	b.Sheet.AtLeast(fmt.Sprintf("%s, requests/s at %d connections", q.name, b.Plan.Connections), came[0].rate(),
		came[1].rate(), rates, q.bar)
	b.Sheet.Told(q.name+", p99 under that load", came[0].p99(), came[1].p99(), p99)
	if q.writes {
		b.Sheet.Told(q.name+", median of a write among it", came[0].write(), came[1].write(),
			came[0].writesBeside(came[1]))
	}
	if !q.frozen {
		return
	}
	rates, p99 = came[0].beside(came[2])
	b.Sheet.AtLeast(q.name+", requests/s beside the frozen reference", came[0].rate(), came[2].rate(), rates, frozenBar)
	b.Sheet.AtMost(q.name+", p99 beside the frozen reference", came[0].p99(), came[2].p99(), p99, 1)
	b.Sheet.Told(q.name+", answers from memory", came[0].hitRate(), "", 0)
	rates, _ = came[3].beside(came[2])
	b.Sheet.Told(q.name+", requests/s with nothing kept, beside the frozen reference", came[3].rate(),
		came[2].rate(), rates)
}

// graphql is a request as a client of the API sends it.
func (q query) graphql(of target) []byte {
	return graphql(of.who, q.document, map[string]any{"id": of.id})
}

// graphqlRepair is the request that changes an instance.
func graphqlRepair(of target) []byte {
	return graphql(of.who, repairDocument, map[string]any{"id": of.instance, "budget": budget()})
}

func graphql(who dataset.Caller, document string, variables map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return fmt.Appendf(nil,
		"POST /graphql HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s", who.Token, len(body), body)
}

// budget is a number of repairs that a policy may have.
func budget() int { return 1 + rand.IntN(20) }

// plain is the request to the hand-written handler.
func (q query) plain(of target) []byte {
	return fmt.Appendf(nil, "GET "+q.path+
		" HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n\r\n", of.id, of.who.Token)
}

// plainRepair is the request to the hand-written handler that changes an instance.
func plainRepair(of target) []byte {
	body := fmt.Sprintf(`{"mode": "MANUAL", "budget": %d, "backOffSeconds": 30}`, budget())
	return fmt.Appendf(nil, "PUT /instances/%s/repair HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", of.instance, of.who.Token, len(body), body)
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
