package compress_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport/compress"
)

// object is one of JSON.
type object = map[string]any

// rows makes answers whose names repeat and whose ids do not, as the platform's do.
type rows struct{ *rand.Rand }

func (r rows) id(kind string) string {
	const letters = "0123456789abcdefghjkmnpqrstvwxyz"
	text := make([]byte, 26)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return kind + "_" + string(text)
}

func (r rows) at() string {
	return time.Unix(1.8e9+r.Int64N(1e6), r.Int64N(1e6)*1000).UTC().Format(time.RFC3339Nano)
}

// roles are those of a workload.
func (r rows) roles() []object {
	return []object{{"componentKey": "peer", "displayName": "Peer", "desired": 3, "current": 3, "healthy": 3,
		"summary": "3 of 3 are healthy"}}
}

func (r rows) many(n int, one func(i int) object) (edges []object) {
	for i := range n {
		edges = append(edges, object{"cursor": r.id("cur"), "node": one(i)})
	}
	return edges
}

func (r rows) workload(i int) object {
	return object{"id": r.id("ins"), "name": fmt.Sprintf("work-%d", i), "appSlug": "hello-cluster",
		"appVersion": "1.2.3",
		"status":     "RUNNING", "health": "HEALTHY", "healthMessage": nil, "smoke": "PASSED", "createdAt": r.at(),
		"updatedAt": r.at(), "releasedAt": nil, "roles": r.roles(),
		"lastOperation": object{"id": r.id("op"), "kind": "INSTANCE_CREATE", "state": "SUCCEEDED", "percent": 100,
			"message": "it runs"}}
}

// detail is a workload with its members and its last events.
func (r rows) detail() object {
	all := r.workload(1)
	all["members"] = r.many(3, func(i int) object {
		return object{"id": r.id("mem"), "componentKey": "peer", "index": i, "status": "READY", "cordoned": false,
			"health": "HEALTHY", "updatedAt": r.at()}
	})
	all["events"] = r.many(20, func(i int) object {
		return object{"id": r.id("evt"), "cursor": r.id("cur"), "seq": i, "type": "apps.instance.member_ready",
			"message": fmt.Sprintf("peer-%d is ready", i), "payload": object{"memberId": r.id("mem"), "index": i},
			"operationId": r.id("op"), "occurredAt": r.at()}
	})
	return all
}

// BenchmarkAnswer is what an answer costs by coding, and how much shorter it becomes ("x").
func BenchmarkAnswer(b *testing.B) {
	r := rows{rand.New(rand.NewPCG(1, 2))}
	for name, data := range map[string]any{"detail": r.detail(), "list": r.many(50, r.workload)} {
		body, err := json.Marshal(object{"data": data})
		require.NoError(b, err)
		for _, accept := range []string{"identity", "gzip", "br"} {
			b.Run(name+"/"+accept, func(b *testing.B) {
				p, request := compress.NewPool(1), httptest.NewRequest(http.MethodPost, "/", nil)
				request.Header.Set("Accept-Encoding", accept)
				w := &dropped{header: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					w.bytes = 0
					p.Answer(w, request, http.StatusOK, body)
				}
				b.ReportMetric(float64(len(body))/float64(w.bytes), "x")
				b.ReportMetric(float64(w.bytes), "bytes")
			})
		}
	}
}

// BenchmarkEncoder is what an encoder takes of memory when it is first needed, with the work on a list of 50.
func BenchmarkEncoder(b *testing.B) {
	body, err := json.Marshal(rows{rand.New(rand.NewPCG(1, 2))}.many(50, rows{rand.New(rand.NewPCG(3, 4))}.workload))
	require.NoError(b, err)
	for _, coding := range []compress.Encoding{compress.Gzip, compress.Brotli} {
		b.Run(string(coding), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, ok := compress.NewPool(1).Encode(coding, body)
				require.True(b, ok)
			}
		})
	}
}

// dropped takes an answer and counts its bytes.
type dropped struct {
	header http.Header
	bytes  int
}

func (d *dropped) Header() http.Header { return d.header }
func (d *dropped) WriteHeader(int)     {}
func (d *dropped) Write(body []byte) (int, error) {
	d.bytes += len(body)
	return len(body), nil
}
