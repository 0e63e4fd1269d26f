package lifecycle

import "github.com/gpuaas/app-platform/sdk/nodetask"

// NodeStatus is the state of a node. Cordoned is a flag beside it.
type NodeStatus string

// The states of a node. One that has just enrolled is OFFLINE until its agent reports.
const (
	NodeOnline  NodeStatus = "ONLINE"
	NodeOffline NodeStatus = "OFFLINE"
	NodeRetired NodeStatus = "RETIRED"
)

// Values lists every NodeStatus as it is stored and published.
func (NodeStatus) Values() []string { return names(NodeOnline, NodeOffline, NodeRetired) }

var nodeMachine = table[NodeStatus]{"node", NodeOffline, []Move[NodeStatus]{
	{NodeOffline, NodeOnline, "its agent reports"},
	{NodeOffline, NodeRetired, "withdrawn"},
	{NodeOnline, NodeOffline, "its agent's heartbeats stopped"},
	{NodeOnline, NodeRetired, "withdrawn"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s NodeStatus) CanMove(to NodeStatus) error { return nodeMachine.check(s, to) }

// Terminal reports whether no state follows: RETIRED.
func (s NodeStatus) Terminal() bool { return nodeMachine.terminal(s) }

// NodeTaskState is the state of a task on a node.
type NodeTaskState string

// The states of a node task.
const (
	TaskPending   NodeTaskState = "PENDING"
	TaskRunning   NodeTaskState = "RUNNING"
	TaskSucceeded NodeTaskState = "SUCCEEDED"
	TaskFailed    NodeTaskState = "FAILED"
	TaskTimedOut  NodeTaskState = "TIMED_OUT"
	TaskCanceled  NodeTaskState = "CANCELED"
)

// Values lists every NodeTaskState as it is stored and published.
func (NodeTaskState) Values() []string {
	return names(TaskPending, TaskRunning, TaskSucceeded, TaskFailed, TaskTimedOut, TaskCanceled)
}

var taskMachine = table[NodeTaskState]{"node_task", TaskPending, []Move[NodeTaskState]{
	{TaskPending, TaskRunning, "the agent took it"},
	{TaskPending, TaskSucceeded, "done; the report of its start was lost"},
	{TaskPending, TaskFailed, "the agent refused it, or the report of its start was lost"},
	{TaskPending, TaskTimedOut, "no agent took it in time, or the report of its start was lost"},
	{TaskPending, TaskCanceled, "canceled before it began"},
	{TaskRunning, TaskSucceeded, "done"},
	{TaskRunning, TaskFailed, "ended without success"},
	{TaskRunning, TaskTimedOut, "killed at its timeout"},
	{TaskRunning, TaskCanceled, "canceled while it ran"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s NodeTaskState) CanMove(to NodeTaskState) error { return taskMachine.check(s, to) }

// Terminal reports whether no state follows: everything but PENDING and RUNNING.
func (s NodeTaskState) Terminal() bool { return taskMachine.terminal(s) }

// NodeTaskKind is what a node task does in a member's sandbox: a kind of sdk/nodetask, as it is stored and published.
type NodeTaskKind string

// The kinds of node task.
const (
	TaskRun            = NodeTaskKind(nodetask.KindRun)
	TaskWriteFile      = NodeTaskKind(nodetask.KindWriteFile)
	TaskStartProcess   = NodeTaskKind(nodetask.KindStartProcess)
	TaskStopProcess    = NodeTaskKind(nodetask.KindStopProcess)
	TaskInspectProcess = NodeTaskKind(nodetask.KindInspectProcess)
	TaskProbe          = NodeTaskKind(nodetask.KindProbe)
	TaskFetchArtifact  = NodeTaskKind(nodetask.KindFetchArtifact)
	TaskCloudInit      = NodeTaskKind(nodetask.KindCloudInit)
	TaskResidue        = NodeTaskKind(nodetask.KindResidue)
	TaskTeardown       = NodeTaskKind(nodetask.KindTeardown)
)

// Values lists every NodeTaskKind as it is stored and published.
func (NodeTaskKind) Values() []string { return names(nodetask.Kinds()...) }

// Health is what the adapter reports of an instance or a member, beside the status. UNKNOWN is never read as good.
type Health string

// The healths.
const (
	HealthHealthy   Health = "HEALTHY"
	HealthDegraded  Health = "DEGRADED"
	HealthUnhealthy Health = "UNHEALTHY"
	HealthUnknown   Health = "UNKNOWN"
)

// Values lists every Health as it is stored and published.
func (Health) Values() []string {
	return names(HealthHealthy, HealthDegraded, HealthUnhealthy, HealthUnknown)
}

// NodeIsolation is how members are kept apart on a node.
type NodeIsolation string

// The isolations: PROCESS is the weaker one, and its evidence states that.
const (
	IsolationNamespace NodeIsolation = "NAMESPACE"
	IsolationProcess   NodeIsolation = "PROCESS"
)

// Values lists every NodeIsolation as it is stored and published.
func (NodeIsolation) Values() []string { return names(IsolationNamespace, IsolationProcess) }

// OutputStream is which of a task's two streams a piece of output came from.
type OutputStream string

// The output streams.
const (
	StreamStdout OutputStream = "STDOUT"
	StreamStderr OutputStream = "STDERR"
)

// Values lists every OutputStream as it is stored and published.
func (OutputStream) Values() []string { return names(StreamStdout, StreamStderr) }

// LogSource is where lines of a member's logs came from.
type LogSource string

// The sources of logs.
const (
	// LogOfNode are lines that the member's node keeps.
	LogOfNode LogSource = "NODE"
	// LogOfEvidence are the last lines of a member that was torn down.
	LogOfEvidence LogSource = "EVIDENCE"
)

// Values lists every LogSource as it is published.
func (LogSource) Values() []string { return names(LogOfNode, LogOfEvidence) }

// MetricsRange is how far back a member's series goes.
type MetricsRange string

// The ranges.
const (
	MetricsQuarter MetricsRange = "QUARTER_HOUR"
	MetricsHour    MetricsRange = "HOUR"
	MetricsDay     MetricsRange = "DAY"
	MetricsWeek    MetricsRange = "WEEK"
)

// Values lists every MetricsRange as it is published.
func (MetricsRange) Values() []string {
	return names(MetricsQuarter, MetricsHour, MetricsDay, MetricsWeek)
}
