package workers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/workers/steps"
)

// BenchmarkAcceptedToDispatched prints how long an accepted launch takes until its adapter has it, at
// 50 launches a second, beside a hand-written SKIP LOCKED loop that sends the same dispatch.
func BenchmarkAcceptedToDispatched(b *testing.B) {
	for b.Loop() {
		ours := latencies(b, func(l *lab, s *script) { l.work() })
		theirs := latencies(b, func(l *lab, s *script) { l.background(func(ctx context.Context) error { return byHand(ctx, l, s) }) })
		for _, at := range []int{50, 90, 99} {
			own, other := percentile(ours, at), percentile(theirs, at)
			b.ReportMetric(float64(own.Microseconds()), fmt.Sprintf("p%d-µs", at))
			b.ReportMetric(float64(own)/float64(other), fmt.Sprintf("p%d-ratio", at))
		}
	}
}

func percentile(sorted []time.Duration, at int) time.Duration { return sorted[(len(sorted)-1)*at/100] }

// latencies launches 50 a second for a while and answers how long each took, sorted.
func latencies(b *testing.B, start func(l *lab, s *script)) []time.Duration {
	l := newLab(b)
	l.pace = steps.DefaultPace()
	s := l.script("fast")
	var mu sync.Mutex
	accepted, took := map[string]time.Time{}, []time.Duration{}
	s.onPut = func(d adapter.Dispatch) (int, any) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if at, ok := accepted[d.OperationID]; ok {
			took = append(took, now.Sub(at))
			delete(accepted, d.OperationID)
		}
		return 0, nil
	}
	w := l.world("fast", s.url)
	start(l, s)
	const warmUp, launches = 50, 250
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range launches {
		<-tick.C
		l.launching(w, time.Hour, func(it launched) {
			mu.Lock()
			accepted[string(it.create)] = time.Now()
			mu.Unlock()
			l.hub.Wake(event.QueueTopic)
		})
	}
	l.until("all are dispatched", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(took) == launches
	})
	took = took[warmUp:] // the first ones pay for connections and prepared statements
	slices.Sort(took)
	return took
}

// byHand is the reference: claim, read, send.
func byHand(ctx context.Context, l *lab, s *script) error {
	woken := l.hub.Wait(event.QueueTopic)
	defer woken.Close()
	signer, err := signerOf(l)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		id, dispatch, err := claimByHand(ctx, l.db.Worker())
		if err == nil {
			body, _ := json.Marshal(dispatch)
			request, _ := http.NewRequestWithContext(ctx, http.MethodPut, s.url+adapter.OperationPath(string(id)), bytes.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			if err := signer.SignRequest(request, "fast", body); err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = answer.Body.Close()
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-woken.C:
		case <-time.After(time.Second):
		}
	}
	return nil
}

func signerOf(l *lab) (*adapter.Signer, error) {
	key, id := l.ring.SigningKey()
	return adapter.NewSigner(l.ring.Issuer(), id, key)
}

func claimByHand(ctx context.Context, pool *pgxpool.Pool) (ids.ID, adapter.Dispatch, error) {
	var id, instance, project, tenant ids.ID
	err := pool.QueryRow(ctx, `UPDATE operation SET claimed_by = 'me', claim_epoch = claim_epoch + 1, state = 'RUNNING', started_at = now() WHERE id = (
		SELECT id FROM operation WHERE ended_at IS NULL AND claimed_by IS NULL AND next_run_at <= now() AND instance_id IS NOT NULL
		ORDER BY next_run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING id, instance_id, project_id, tenant_id`).Scan(&id, &instance, &project, &tenant)
	return id, adapter.Dispatch{OperationID: string(id), Kind: adapter.InstanceCreate, Attempt: 1, Deadline: time.Now().Add(time.Hour),
		Instance: adapter.Instance{ID: string(instance), App: "demo"}, Platform: adapter.Platform{GraphQLURL: "x", Token: "x"}}, err
}
