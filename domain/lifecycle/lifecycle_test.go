package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run go test ./domain/lifecycle -update and read the difference")
}

func TestMachinesAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, machine := range Machines() {
		fmt.Fprintf(&out, "%s, begins as %s\n", machine.Name, machine.Initial)
		for _, row := range Transitions() {
			if row.Machine == machine.Name {
				fmt.Fprintf(&out, "  %-12s → %-12s  %s\n", row.From, row.To, row.Why)
			}
		}
	}
	golden(t, "machines.golden", out.String())
}

func TestOperationKindsAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, e := range Kinds() {
		fmt.Fprintf(&out, "%s (%s), scope %s, key %s\n  accepted %v, succeeded %v, failed %v\n",
			e.Kind, e.Wire, e.Scope, e.Permission, e.Accepted, e.Succeeded, e.Failed)
	}
	golden(t, "kinds.golden", out.String())
}

// checkable is any state machine's state.
type checkable interface {
	~string
	Values() []string
	Terminal() bool
}

// machine holds one state type against its rows: check is its CanMove.
func machine[S checkable](t *testing.T, name string, check func(from, to S) error) {
	t.Helper()
	var states S
	values := states.Values()
	allowed, reached := map[string]bool{}, map[string]bool{}
	var initial string
	for _, m := range Machines() {
		if m.Name == name {
			initial = m.Initial
		}
	}
	for _, row := range Transitions() {
		if row.Machine != name {
			continue
		}
		require.Contains(t, values, row.From)
		require.Contains(t, values, row.To)
		require.NotEqual(t, row.From, row.To)
		if name != "node" { // whose beginning is being offline
			require.NotEqual(t, initial, row.To, "nothing returns to the beginning")
		}
		require.NotEmpty(t, row.Why)
		require.False(t, allowed[row.From+row.To], "the move stands twice")
		allowed[row.From+row.To], reached[row.To] = true, true
	}
	for _, from := range values {
		require.True(t, from == initial || reached[from], "%s %s cannot be reached", name, from)
		leaves := false
		for _, to := range values {
			err := check(S(from), S(to))
			require.Equal(t, allowed[from+to], err == nil, "%s → %s", from, to)
			leaves = leaves || err == nil
			if err != nil {
				require.True(t, fault.Is(err, fault.FailedPrecondition))
				require.ErrorContains(t, err, from)
				require.ErrorContains(t, err, to)
			}
		}
		require.Equal(t, !leaves, S(from).Terminal(), from)
	}
}

func TestEveryMachineAllowsItsMovesAndRefusesAllOthers(t *testing.T) {
	t.Parallel()
	machine(t, "instance", InstanceStatus.CanMove)
	machine(t, "allocation", AllocationStatus.CanMove)
	machine(t, "member", MemberStatus.CanMove)
	machine(t, "artifact", Stage.CanMove)
	machine(t, "manifest", Stage.CanMove)
	machine(t, "operation", OperationState.CanMove)
	machine(t, "operation_step", StepState.CanMove)
	machine(t, "node_task", NodeTaskState.CanMove)
	machine(t, "node", NodeStatus.CanMove)
	machine(t, "share", ShareStatus.CanMove)
	machine(t, "gap", GapState.CanMove)
	require.Len(t, Machines(), 11, "a new machine is checked here as well")
}

func TestTerminalStatesAreTheDesigns(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"STOPPED", "FAILED"}, ends[InstanceStatus]())
	require.Equal(t, []string{"RELEASED"}, ends[AllocationStatus]())
	require.Equal(t, []string{"REMOVED"}, ends[MemberStatus]())
	require.Equal(t, []string{"RETIRED"}, ends[Stage]())
	require.Equal(t, []string{"SUCCEEDED", "FAILED", "CANCELED"}, ends[OperationState]())
	require.Equal(t, []string{"SKIPPED", "UNDONE"}, ends[StepState]())
	require.Equal(t, []string{"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED"}, ends[NodeTaskState]())
	require.Equal(t, []string{"RETIRED"}, ends[NodeStatus]())
	require.Equal(t, []string{"DECLINED", "CLOSED"}, ends[GapState]())
}

// ends lists the terminal states.
func ends[S checkable]() []string {
	var none S
	return slices.DeleteFunc(none.Values(), func(value string) bool { return !S(value).Terminal() })
}

func TestLiveAndLaunchableStates(t *testing.T) {
	t.Parallel()
	require.True(t, InstanceCreated.Live() && InstanceStarting.Live() && InstanceRunning.Live())
	require.False(t, InstanceStopping.Live() || InstanceStopped.Live() || InstanceFailed.Live())
	require.True(t, MemberPending.Live() && MemberRemoving.Live())
	require.False(t, MemberRemoved.Live() || MemberFailed.Live())
	require.True(t, StageActive.Launchable())
	require.False(t, StageDeprecated.Launchable() || StageDraft.Launchable())
}

// list checks a closed list against its own stored and wire spelling.
func list[S word](t *testing.T) {
	t.Helper()
	form := regexp.MustCompile(`^[A-Z]+[0-9]*(_[A-Z]+)*$`)
	var none S
	require.NotEmpty(t, none.Values())
	for _, name := range none.Values() {
		require.Regexp(t, form, name)
		got, err := Parse[S](name)
		require.NoError(t, err)
		require.Equal(t, S(name), got)
		wired, err := FromWire[S](Wire(got))
		require.NoError(t, err)
		require.Equal(t, got, wired)
		_, err = FromWire[S](name)
		require.True(t, fault.Is(err, fault.InvalidArgument), "the wire form is in lower case only")
	}
	for _, bad := range []string{"", "nonsense", strings.Repeat("A", 1<<16)} {
		got, err := Parse[S](bad)
		require.True(t, fault.Is(err, fault.InvalidArgument))
		require.Less(t, len(err.Error()), 600)
		require.Empty(t, got)
	}
}

func TestEveryListOfWordsReadsAndWritesItself(t *testing.T) {
	t.Parallel()
	list[InstanceStatus](t)
	list[AllocationStatus](t)
	list[CapacityShape](t)
	list[MemberStatus](t)
	list[Stage](t)
	list[OperationState](t)
	list[OperationKind](t)
	list[OperationScope](t)
	list[StepState](t)
	list[Outcome](t)
	list[Owner](t)
	list[NodeStatus](t)
	list[NodeTaskState](t)
	list[NodeTaskKind](t)
	list[Health](t)
	list[OperatingMode](t)
	list[ControlPlaneScope](t)
	list[NodeIsolation](t)
	list[OutputStream](t)
	list[LogSource](t)
	list[MetricsRange](t)
	list[TriageStand](t)
	list[TriageEvidenceKind](t)
	list[ActionRisk](t)
	list[AccountLimit](t)
	list[PolicyScope](t)
	list[ShareStatus](t)
	list[SecretAudience](t)
	list[SecretDelivery](t)
	list[WebhookStatus](t)
	list[DeliveryState](t)
	list[SourceKind](t)
	list[SignaturePolicy](t)
	list[ArtifactKind](t)
	list[SignatureState](t)
	list[PartRole](t)
	list[EvidenceKind](t)
	list[CanaryVerdict](t)
	list[GapKind](t)
	list[GapState](t)
}

func TestEveryKindHasItsEffects(t *testing.T) {
	t.Parallel()
	var names []string
	for _, effects := range Kinds() {
		names = append(names, string(effects.Kind))
		require.Equal(t, effects, effects.Kind.Effects())
		require.NotEmpty(t, effects.Permission)
		for _, event := range slices.Concat(effects.Accepted, effects.Succeeded, effects.Failed) {
			require.Contains(t, EventTypes(), event)
		}
		require.Equal(t, effects.Wire, effects.Kind.WireName())
	}
	require.Equal(t, InstanceCreate.Values(), names)
	require.Equal(t, Effects{Kind: "NONE"}, OperationKind("NONE").Effects())
}

func TestEventTypesAreUniqueAndNamedAlike(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(
		`^apps\.(instance|operation|allocation|orphan|artifact|budget|volume)\.[a-z]+(_[a-z]+)*$`)
	types := EventTypes()
	for _, event := range types {
		require.Regexp(t, form, string(event))
	}
	slices.Sort(types)
	require.Len(t, slices.Compact(types), len(EventTypes()))
	source, err := os.ReadFile("event.go")
	require.NoError(t, err)
	require.Len(t, EventTypes(), strings.Count(string(source), `EventType = "`), "every constant is listed")
}
