package lifecycle

import "slices"

// MemberFailure is why a member in service was lost.
type MemberFailure string

// The reasons.
const (
	FailureInitGone      MemberFailure = "INIT_GONE"
	FailureOutOfMemory   MemberFailure = "OUT_OF_MEMORY"
	FailureRestartsSpent MemberFailure = "RESTARTS_SPENT"
	FailureNodeRestarted MemberFailure = "NODE_RESTARTED"
	FailureNodeLost      MemberFailure = "NODE_LOST"
	FailureReported      MemberFailure = "REPORTED"
)

// The parties that find a failure.
const (
	FoundByAgent    = "agent"
	FoundByPlatform = "platform"
	FoundByAdapter  = "adapter"
)

// FailureRule is what is true of a reason.
type FailureRule struct {
	// Failure is the reason.
	Failure MemberFailure
	// FoundBy is who finds it: the node's agent, the platform or the adapter.
	FoundBy string
	// FilesSurvive reports whether the member's directory is still on its node, so that a recovery may succeed.
	FilesSurvive bool
	// Ordinary reports whether the platform brings the member back whatever its instance's repair policy is.
	Ordinary bool
	// Text says it to a person.
	Text string
}

// failureRules is the table of reasons.
var failureRules = []FailureRule{
	{FailureInitGone, FoundByAgent, true, false, "its init process has ended, and with it all its processes"},
	{FailureOutOfMemory, FoundByAgent, true, false, "it ran out of memory, and its init process has ended"},
	{FailureRestartsSpent, FoundByAgent, true, false, "a process in it failed more often than it may be restarted"},
	{FailureNodeRestarted, FoundByAgent, true, true, "its node has restarted"},
	{FailureNodeLost, FoundByPlatform, false, false, "its node is lost"},
	{FailureReported, FoundByAdapter, true, false, "its adapter reports that it failed"},
}

// FailureRules lists what is true of every reason.
func FailureRules() []FailureRule { return append([]FailureRule(nil), failureRules...) }

// Values lists every MemberFailure as it is stored and published.
func (MemberFailure) Values() []string {
	return names(FailureInitGone, FailureOutOfMemory, FailureRestartsSpent, FailureNodeRestarted, FailureNodeLost,
		FailureReported)
}

// Rule returns what is true of the reason; of an unknown one, nothing.
func (f MemberFailure) Rule() FailureRule {
	for _, rule := range failureRules {
		if rule.Failure == f {
			return rule
		}
	}
	return FailureRule{Failure: f}
}

// belowHealthy are the healths that are worse than HEALTHY, the worst last. UNKNOWN is worse than DEGRADED, since it is
// never read as good.
var belowHealthy = []Health{HealthDegraded, HealthUnknown, HealthUnhealthy}

// Worse reports whether the health is worse than the other one.
func (h Health) Worse(than Health) bool {
	return slices.Index(belowHealthy, h) > slices.Index(belowHealthy, than)
}

// AtRest reports whether a member in this state is in service, so that it fails by a finding: one in another state has
// an operation, which reports its end.
func (s MemberStatus) AtRest() bool {
	return s == MemberActive || s == MemberDraining || s == MemberDrained
}
