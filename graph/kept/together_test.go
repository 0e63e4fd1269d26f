package kept_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// subjects are an instance and a page, and one that no statement takes.
func (h *house) subjects() []tx.Subject {
	return []tx.Subject{
		tx.InstanceSubject(ids.ID(h.instances[0].ID)), tx.InstanceSubject(ids.ID(h.instances[1].ID)),
		tx.InstanceSubject("ins_none"),
		tx.InstanceSubject("ins_\x00"),
		tx.InstancesSubject(tx.Listed{Project: ids.ID(h.instances[0].ProjectID), Most: 5}),
	}
}

// Whoever asks at once with others gets what they would get alone: a proof, none, or an error of their own.
func TestProofsMadeTogetherAreThoseMadeAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	for _, caller := range h.callers { // the scope is written
		h.ask(t, h.kept, caller, `{ instances(projectId: $project) { edges { cursor } } }`, h.instances[0])
	}
	_, err := h.DB.Prove(h.callers[0], h.subjects()[0]) // what the proofs rest on
	require.NoError(t, err)
	type came struct {
		proof tx.Proof
		err   error
	}
	ask := func(who, about int) (c came) {
		c.proof, c.err = h.DB.Prove(h.callers[who], h.subjects()[about])
		return c
	}
	alone := map[string]came{}
	holding := 0
	for who := range h.callers {
		for about := range h.subjects() {
			c := ask(who, about)
			require.Equal(t, about == 3, c.err != nil, "%v", c.err)
			alone[fmt.Sprint(who, about)] = c
			if c.proof.Holds() {
				holding++
			}
		}
	}
	require.Greater(t, holding, 10)
	together := map[string]came{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		for who := range h.callers {
			for about := range h.subjects() {
				all.Go(func() {
					c := ask(who, about)
					lock.Lock()
					defer lock.Unlock()
					together[fmt.Sprint(who, about)] = c
				})
			}
		}
	}
	all.Wait()
	for who, want := range alone {
		require.Equal(t, want.proof, together[who].proof, who)
		require.Equal(t, want.err != nil, together[who].err != nil, who)
	}
}

// A proof after a right has ended never comes from a statement that began before, however many callers share it.
func TestNoProofOutlivesARightAmongOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	caller, person, about := h.callers[1], h.people[1], h.subjects()[0]
	h.ask(t, h.kept, caller, `{ instances(projectId: $project) { edges { cursor } } }`, h.instances[0])
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 16 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = h.DB.Prove(caller, about)
				}
			}
		})
	}
	for round := range 60 {
		holds := round%2 == 1
		h.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, person.ID)
		if holds {
			h.heal(person)
		}
		proof, err := h.DB.Prove(caller, about)
		require.NoError(t, err)
		require.Equal(t, holds, proof.Holds(), "%d", round)
	}
	close(stop)
	others.Wait()
}

// A subject with a thousand rows to prove is not proved, so that no caller waits long for another's proof.
func TestWhatIsLongToProveIsNotProved(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1<<20)
	of, caller := h.instances[0], h.callers[0]
	h.ask(t, h.kept, caller, `{ instances(projectId: $project) { edges { cursor } } }`, of)
	proves := func() bool {
		proof, err := h.DB.Prove(caller, tx.InstanceSubject(ids.ID(of.ID)))
		require.NoError(t, err)
		return proof.Holds()
	}
	steps := func(n int) {
		h.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state)
			SELECT platform.mint('stp'), tenant_id, project_id, id, 'more-' || $2::int + n, $2::int + n, 'PENDING'
			FROM operation, generate_series(1, $3::int) n WHERE id = (SELECT last_operation_id FROM instance
			WHERE id = $1)`, of.ID, n*1000, n)
	}
	steps(997) // beside the two there are
	require.True(t, proves())
	steps(1)
	require.False(t, proves())
}
