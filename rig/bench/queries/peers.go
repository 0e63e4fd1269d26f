package queries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/peers"
	"github.com/gpuaas/app-platform/rig/bench/peers/gqlgen"
)

// The bars beside other software: requests a second, the platform with its walls, the others without. coldBar is beside
// gqlgen where no answer is kept from one request to the next.
const (
	gqlgenBar           = 2.5
	coldBar             = 1.3
	postgraphileBar     = 4
	postgraphileListBar = 6
)

// measurePeers lets the platform, plain gqlgen and PostGraphile answer in turns.
func measurePeers(ctx context.Context, with *kit.Bench) error {
	b := bench{with}
	address, err := peers.Install(ctx, b.Set.Admin, b.Set.DSN)
	if err != nil {
		return err
	}
	readers, err := b.Set.Readers(ctx, b.Plan.Callers)
	if err != nil {
		return err
	}
	for _, one := range []peerQuery{
		{query: detailOf(readers), document: peers.Detail, gqlgen: gqlgenBar, derived: postgraphileBar},
		{query: listOf(readers), document: peers.List, derived: postgraphileListBar},
	} {
		if err := b.besidePeers(ctx, one, b.peers(one, address)); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

// peerQuery is a query with PostGraphile's document for it, and the bars; 0 for none.
type peerQuery struct {
	query
	document        string
	gqlgen, derived float64
}

// peers returns the sides: the platform with kept answers and without, gqlgen and, where it is installed, PostGraphile
// as one process a core and as one alone.
func (b bench) peers(q peerQuery, address string) []side {
	config := peers.Config{DSN: address, Connections: b.Plan.Pool, Folder: b.Plan.PostGraphile, Processes: 1}
	sides := []side{platformSide(q.query), b.cold(q.query),
		{name: "plain gqlgen", role: gqlgen.Role, read: q.graphql, write: graphqlRepair, config: config, open: true,
			bar: q.gqlgen}}
	if config.Folder == "" {
		return sides
	}
	derived := side{role: peers.PostGraphileRole, open: true, compare: sameRows, write: derivedRepair,
		bar:  q.derived,
		read: func(of target) []byte { return graphql(of.who, q.document, map[string]any{"id": of.id}) }}
	config.Processes = runtime.NumCPU()
	derived.name, derived.config = "PostGraphile, a process a core", config
	sides = append(sides, derived)
	config.Processes = 1
	derived.name, derived.config = "PostGraphile, one process", config
	return append(sides, derived)
}

// derivedRepair is the write of the load as PostGraphile has it.
func derivedRepair(of target) []byte {
	return graphql(of.who, peers.Repair, map[string]any{"id": of.instance, "now": time.Now().UTC(),
		"repair": map[string]any{"mode": "MANUAL", "budget": budget(), "backOffSeconds": 30}})
}

// besidePeers measures one query and writes its figures into the sheet.
func (b bench) besidePeers(ctx context.Context, q peerQuery, sides []side) error {
	stop, err := b.open(ctx, sides)
	defer stop()
	if err != nil {
		return err
	}
	if _, err := b.sameAnswers(q.query, sides); err != nil {
		return err
	}
	came, err := b.turns(ctx, q.query, sides)
	if err != nil {
		return err
	}
	b.Sheet.Told(q.name+" beside peers, answers from memory", came[0].hitRate(), "", 0)
	for i, one := range sides[2:] {
		mine, other := came[0], came[i+2]
		rates, p99 := mine.beside(other)
		name := q.name + ", requests/s beside " + one.name
		if one.bar > 0 {
			b.Sheet.AtLeast(name, mine.rate(), other.rate(), rates, one.bar)
		} else {
			b.Sheet.Told(name, mine.rate(), other.rate(), rates)
		}
		b.Sheet.Told(q.name+", p99 beside "+one.name, mine.p99(), other.p99(), p99)
	}
	if q.gqlgen > 0 {
		rates, _ := came[1].beside(came[2])
		b.Sheet.AtLeast(q.name+", requests/s with nothing kept, beside plain gqlgen", came[1].rate(), came[2].rate(),
			rates, coldBar)
	}
	return nil
}

// sameRows compares an answer of the platform with one of a schema derived from the tables, which has cursors of
// its own, big integers as strings, and times in another form.
func sameRows(mine, other []byte) error {
	var a, b any
	if err := errors.Join(json.Unmarshal(mine, &a), json.Unmarshal(other, &b)); err != nil {
		return err
	}
	if a, b = plainRows(a), plainRows(b); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the rows differ:\nplatform: %.2000v\nother:    %.2000v", a, b)
	}
	return nil
}

// plainRows returns a value without cursors, connections without edges as lists, and numbers and times in one form.
func plainRows(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if nodes, ok := v["nodes"]; ok && len(v) == 1 {
			return plainRows(nodes)
		}
		out := map[string]any{}
		for key, one := range v {
			if key != "cursor" && key != "endCursor" {
				out[key] = plainRows(one)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = plainRows(one)
		}
		return out
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n
		}
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return t.UnixMicro()
		}
	}
	return value
}
