package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestANodeWithoutARuntimeIsNamedForWhatWaits(t *testing.T) {
	t.Parallel()
	waits := func() *Facts {
		f := working(lifecycle.MembersAdd)
		startless := node("n1", lifecycle.NodeOnline, time.Second)
		startless.Startless = "crun is not in PATH"
		f.Members = []Member{{ID: "a", Name: "worker 0", Node: &startless}, {ID: "b", Node: &startless}, {ID: "c"}}
		return f
	}
	require.Equal(t, finding{subject: "n1", since: ago(time.Second), next: waits().next(),
		words: []string{"node", "name of n1", "member", "worker 0", "detail", "crun is not in PATH"}},
		only(t, nodeStartless(waits())))
	judged(t, nodeStartless, waits,
		change{"it waits", func(*Facts) {}, true},
		change{"a node that is not heard is lost", func(f *Facts) { f.Members[0].Node.Status = lifecycle.NodeOffline },
			false},
		change{"it works again", func(f *Facts) { f.Members[0].Node.Startless = "" }, false},
		change{"another member is touched", func(f *Facts) {
			f.Operation.Targets = append(f.Operation.Targets, "c")
		}, false})
}

func TestATaskThatTheNodeRefusedNamesTheRemedy(t *testing.T) {
	t.Parallel()
	refused := func() *Facts {
		f := working(lifecycle.MembersAdd)
		f.Ended = []Task{{ID: "k1", Kind: lifecycle.TaskRun, State: lifecycle.TaskFailed, Code: fault.DeviceMissing,
			Node: node("n1", lifecycle.NodeOnline, 0), Ended: ago(time.Second),
			Detail: "what the adapter's task printed"}}
		return f
	}
	require.Contains(t, only(t, nodeRefuses(refused())).words, fault.Lookup(fault.DeviceMissing).Text)
	judged(t, nodeRefuses, refused,
		change{"refused", func(*Facts) {}, true},
		change{"a later task runs", func(f *Facts) { f.Open = []Task{{ID: "k2"}} }, false},
		change{"no task ended", func(f *Facts) { f.Ended = nil }, false},
		change{"it succeeded", func(f *Facts) { f.Ended[0].State = lifecycle.TaskSucceeded }, false},
		change{"it failed for another reason", func(f *Facts) { f.Ended[0].Code = fault.DigestMismatch }, false})
}
