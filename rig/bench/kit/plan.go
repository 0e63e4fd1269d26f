package kit

import (
	"time"

	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
)

// Plan is how much is measured.
type Plan struct {
	Data    string // folder of the database
	Profile string // folder for CPU profiles of the platform; empty for none
	// PostGraphile is the folder in which PostGraphile is installed; empty to measure without it.
	PostGraphile string
	Size         dataset.Size
	Durability   postgres.Profile
	Only         []string
	Rounds       int
	Callers      int           // people who ask
	Connections  int           // HTTP connections at once
	Pool         int           // database connections of each login role
	Span         time.Duration // one round of requests
	Catalog      int           // manifests and artifacts
	// bytes of the artifact that is delivered, and of the one over which memory must stay flat
	Blob       int64
	Large      int64
	Members    int             // that each side starts, and commands in each
	Sockets    []int           // fan-outs
	Messages   int             // of a round of fan-out, over all sockets
	Rate       int             // operations a second
	Operations int             // of a round of dispatches
	Backlog    int             // operations of a round of throughput
	Long       int             // operations over which memory must stay flat
	Waiting    int             // operations that wait at once, and of a backlog that others live beside
	Wait       time.Duration   // for which they are watched
	Records    int             // of usage that a round takes
	Month      int             // records of the month that is rated
	Scale      [2]dataset.Size // one ten times the other
	NoFail     bool
}

// Full is the plan behind the published figures.
func Full() Plan {
	return Plan{
		Data: ".data/bench", Size: dataset.Full, Durability: postgres.Durable, Rounds: 5, Callers: 64, Connections: 64,
		Pool: 16,
		Span: 4 * time.Second, Catalog: 5_000, Blob: 512 << 20, Large: 2 << 30, Members: 30,
		Sockets:  []int{1_000, 10_000},
		Messages: 300_000, Rate: 50, Operations: 750,
		Backlog: 5_000, Long: 100_000, Waiting: 10_000, Wait: 20 * time.Second,
		Records: 50_000, Month: 500_000,
		Scale: [2]dataset.Size{dataset.Tenth, dataset.Full},
	}
}

// Short makes a plan a quick look.
func (p *Plan) Short() {
	p.Size, p.Rounds, p.Span = dataset.Short, 2, time.Second
	p.Sockets, p.Messages, p.Operations = []int{500}, 50_000, 150
	p.Blob, p.Members = 128<<20, 10
	p.Records, p.Month = 10_000, 50_000
	p.Backlog, p.Long, p.Waiting, p.Wait = 1_000, 3_000, 1_000, 5*time.Second
}
