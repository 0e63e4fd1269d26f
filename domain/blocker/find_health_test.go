package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
)

// onTwo are the facts of an instance with two members on one node and one on another.
func onTwo(change func(*Node)) *Facts {
	first, second := node("n1", lifecycle.NodeOnline, time.Second), node("n2", lifecycle.NodeOnline, time.Second)
	change(&first)
	f := &Facts{Now: ago(0), Instance: &Instance{}}
	f.Members = []Member{{ID: "a", Name: "worker 0", Node: &first}, {ID: "b", Name: "worker 1", Node: &first},
		{ID: "c", Node: &second},
		{ID: "d"}}
	return f
}

func TestTheWorstConditionOfANodeIsNamedOnce(t *testing.T) {
	t.Parallel()
	bad := func() *Facts {
		return onTwo(func(n *Node) {
			n.Barring = []nodehealth.Condition{{Name: "gpu", State: nodehealth.Bad, Message: "an error",
				Since: ago(time.Hour)},
				{Name: "disk"}}
		})
	}
	require.Equal(t, finding{subject: "n1", since: ago(time.Hour),
		words: []string{"node", "name of n1", "member", "worker 0",
			"condition", "gpu", "state", "bad", "detail", "an error"}}, only(t, nodeCondition(bad())))
	judged(t, nodeCondition, bad,
		change{"it is bad", func(*Facts) {}, true},
		change{"it is well", func(f *Facts) { f.Members[0].Node.Barring = nil }, false},
		change{"a node that is not heard is lost", func(f *Facts) { f.Members[0].Node.Status = lifecycle.NodeOffline },
			false})
}

func TestANodeUnderDrainIsNamedWithItsReason(t *testing.T) {
	t.Parallel()
	drained := func() *Facts {
		return onTwo(func(n *Node) { n.Drain = &nodehealth.Drain{Since: ago(time.Minute), Reason: "firmware"} })
	}
	require.Equal(t, finding{subject: "n1", since: ago(time.Minute),
		words: []string{"node", "name of n1", "member", "worker 0",
			"reason", " (firmware)"}}, only(t, nodeDraining(drained())))
	judged(t, nodeDraining, drained,
		change{"it is drained", func(*Facts) {}, true},
		change{"without a reason", func(f *Facts) { f.Members[0].Node.Drain.Reason = "" }, true},
		change{"it is taken back", func(f *Facts) { f.Members[0].Node.Drain.Ending = true }, false},
		change{"there is none", func(f *Facts) { f.Members[0].Node.Drain = nil }, false})
}
