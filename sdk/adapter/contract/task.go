package contract

import (
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// TaskKind is what a node task does.
type TaskKind = nodetask.Kind

// The node task kinds.
const (
	TaskRun            = nodetask.KindRun
	TaskWriteFile      = nodetask.KindWriteFile
	TaskStartProcess   = nodetask.KindStartProcess
	TaskStopProcess    = nodetask.KindStopProcess
	TaskInspectProcess = nodetask.KindInspectProcess
	TaskProbe          = nodetask.KindProbe
	TaskFetchArtifact  = nodetask.KindFetchArtifact
	TaskCloudInit      = nodetask.KindCloudInit
	TaskResidue        = nodetask.KindResidue
	TaskTeardown       = nodetask.KindTeardown
)

// NodeTask is the details of one node task: one of the structs below, or one of sdk/nodetask. It runs in the sandbox of
// one member on that member's node.
//
// The structs below are sdk/nodetask's in a form that is convenient to write: text where absent and empty mean the
// same, and whole seconds with a duration beside them. They have the same fields in JSON; a test compares them.
type NodeTask interface {
	// TaskKind returns the kind of task that the details are for.
	TaskKind() TaskKind
}

// EnvVar is one environment variable: a plain value, a sealed one or a runtime secret's, never two of them.
type EnvVar struct {
	// Name is the variable's name.
	Name string `json:"name"`
	// Value is its value, in clear.
	Value string `json:"value,omitempty"`
	// Sealed is its value as made by [Seal].
	Sealed string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the member's node.
	SecretRef string `json:"secretRef,omitempty"`
}

// RunCommand runs a command to its end. A non-zero exit code fails the task.
type RunCommand struct {
	// Command is the program and its arguments; no shell is involved.
	Command []string `json:"command"`
	// Env is added to a small fixed environment.
	Env []EnvVar `json:"env,omitempty"`
	// WorkDir is where it runs; empty means /.
	WorkDir string `json:"workDir,omitempty"`
	// User is who it runs as; empty means root.
	User string `json:"user,omitempty"`
	// Stdin is what it reads.
	Stdin string `json:"stdin,omitempty"`
}

// TaskKind returns RUN.
func (RunCommand) TaskKind() TaskKind { return TaskRun }

// WriteFile writes a file into the member's file system: one of Content, ContentBase64, Sealed or
// SecretRef.
type WriteFile struct {
	// Path is absolute.
	Path string `json:"path"`
	// Mode is octal, such as "0644".
	Mode string `json:"mode,omitempty"`
	// Owner is "user" or "user:group".
	Owner string `json:"owner,omitempty"`
	// Content is the file's text.
	Content string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes.
	ContentBase64 string `json:"contentBase64,omitempty"`
	// Sealed is the file's bytes as made by [Seal].
	Sealed string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the member's node: the file holds its value.
	SecretRef string `json:"secretRef,omitempty"`
	// MakeDirs makes missing directories above it.
	MakeDirs bool `json:"makeDirs,omitempty"`
}

// TaskKind returns WRITE_FILE.
func (WriteFile) TaskKind() TaskKind { return TaskWriteFile }

// Restart says when a supervised process that ended is started again.
type Restart struct {
	// Policy is "never", "on_failure" or "always".
	Policy string `json:"policy"`
	// MaxRestarts bounds how often.
	MaxRestarts int `json:"maxRestarts,omitempty"`
	// BackoffSeconds is the pause before the first restart, in whole seconds.
	BackoffSeconds int `json:"backoffSeconds,omitempty"`
	// Backoff is the same pause to the millisecond. When it is not 0 it is sent as backoffSeconds, whatever
	// BackoffSeconds is.
	Backoff time.Duration `json:"-"`
}

// StartProcess starts a supervised process, which must stay in the foreground. The same name
// with the same details is a no-op; with others the task fails.
type StartProcess struct {
	// Name identifies it within the member.
	Name string `json:"name"`
	// Command is the program and its arguments.
	Command []string `json:"command"`
	// Env is added to a small fixed environment.
	Env []EnvVar `json:"env,omitempty"`
	// WorkDir is where it runs; empty means /.
	WorkDir string `json:"workDir,omitempty"`
	// User is who it runs as; empty means root.
	User string `json:"user,omitempty"`
	// Restart is what happens when it ends.
	Restart Restart `json:"restart"`
	// StopSignal is the signal that asks it to stop; empty means SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
	// StopTimeoutSeconds is the time from the stop signal to SIGKILL, in whole seconds.
	StopTimeoutSeconds int `json:"stopTimeoutSeconds,omitempty"`
	// StopTimeout is the same time to the millisecond. When it is not 0 it is sent as stopTimeoutSeconds, whatever
	// StopTimeoutSeconds is.
	StopTimeout time.Duration `json:"-"`
}

// TaskKind returns START_PROCESS.
func (StartProcess) TaskKind() TaskKind { return TaskStartProcess }

// StopProcess stops a supervised process; one that is absent is a success.
type StopProcess = nodetask.StopProcess

// InspectProcess reads the state of a supervised process.
type InspectProcess = nodetask.InspectProcess

// ExecProbe succeeds when the command exits with 0.
type ExecProbe = nodetask.ExecProbe

// TCPProbe succeeds when the port accepts a connection.
type TCPProbe = nodetask.TCPProbe

// HTTPProbe succeeds when a GET is answered with the expected status.
type HTTPProbe struct {
	// Port is 1 to 65535.
	Port int `json:"port"`
	// Path begins with a slash.
	Path string `json:"path"`
	// Host is empty for the node itself.
	Host string `json:"host,omitempty"`
	// ExpectStatus is 0 for any of 200 to 399.
	ExpectStatus int `json:"expectStatus,omitempty"`
}

// Probe checks that something answers, several times if need be: exactly one of Exec, TCP and HTTP.
type Probe struct {
	// Exec, TCP and HTTP are the ways to check.
	Exec *ExecProbe `json:"exec,omitempty"`
	TCP  *TCPProbe  `json:"tcp,omitempty"`
	HTTP *HTTPProbe `json:"http,omitempty"`
	// Attempts is how often at most.
	Attempts int `json:"attempts,omitempty"`
	// IntervalSeconds is the pause between two.
	IntervalSeconds float64 `json:"intervalSeconds,omitempty"`
	// TimeoutSeconds bounds each, in whole seconds.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// Timeout is the same bound to the millisecond. When it is not 0 it is sent as timeoutSeconds, whatever
	// TimeoutSeconds is.
	Timeout time.Duration `json:"-"`
}

// TaskKind returns PROBE.
func (Probe) TaskKind() TaskKind { return TaskProbe }

// ResidueQuery lists everything of the member that is left on the node.
type ResidueQuery = nodetask.ResidueQuery

// Teardown stops everything of the member and deletes its sandbox.
type Teardown = nodetask.Teardown

// TaskSpec is one node task to run.
type TaskSpec struct {
	// IdempotencyKey makes a repeat for the same member the same task.
	IdempotencyKey string
	// Kind is what it does.
	Kind TaskKind
	// Spec is its details as JSON; secrets in it are sealed.
	Spec json.RawMessage
	// Timeout is how long it may take on the node, one second to one hour; 0 means one minute.
	Timeout time.Duration
}

// TaskState is where a node task stands.
type TaskState string

// The node task states.
const (
	TaskPending   TaskState = "PENDING"
	TaskRunning   TaskState = "RUNNING"
	TaskSucceeded TaskState = "SUCCEEDED"
	TaskFailed    TaskState = "FAILED"
	TaskTimedOut  TaskState = "TIMED_OUT"
	TaskCanceled  TaskState = "CANCELED"
)

// Ended says whether the task will not change any more.
func (s TaskState) Ended() bool { return s != TaskPending && s != TaskRunning }

// TaskResult is how a node task ended. Which fields are set depends on its kind.
type TaskResult struct {
	// ID is the task's id.
	ID string `json:"id"`
	// State is where it stands.
	State TaskState `json:"state"`
	// Message says it to a person.
	Message string `json:"message"`
	// ExitCode, Stdout, Stderr and Truncated are what a command came to. Output is cut at 64 KiB.
	ExitCode  *int   `json:"exitCode"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"-"`
	// Raw is the task's result object as the agent wrote it.
	Raw json.RawMessage `json:"result"`
}

// ProcessState is how a supervised process is.
type ProcessState struct {
	// Name identifies it within the member.
	Name string `json:"name"`
	// State is "running", "exited", "failed" or "absent".
	State string `json:"state"`
	// PID is its process id in the member's namespace, 0 when it does not run.
	PID int `json:"pid"`
	// Restarts is how often it was started again.
	Restarts int `json:"restarts"`
	// ExitCode is its last exit code, nil while it has none.
	ExitCode *int `json:"exitCode"`
	// StartedAt is when it was last started.
	StartedAt *time.Time `json:"startedAt"`
	// LogTail is the end of what it wrote.
	LogTail string `json:"logTail"`
}

// Residue is everything of a member that is left on its node.
type Residue struct {
	// Sandbox says whether its namespaces still exist.
	Sandbox bool `json:"sandbox"`
	// Processes are its live processes.
	Processes []ResidueProcess `json:"processes"`
	// Mounts are its mount points.
	Mounts []string `json:"mounts"`
	// Files, Bytes and Names are what it left on disk; Names holds the first 50 paths.
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Names []string `json:"names"`
	// Cgroups are the control groups of its limits, and Network is what is of its network on the node.
	Cgroups []string `json:"cgroups,omitempty"`
	Network []string `json:"network,omitempty"`
}

// ResidueProcess is a live process of a member.
type ResidueProcess struct {
	// PID is its process id, as the node sees it.
	PID int `json:"pid"`
	// Command is how it was called.
	Command string `json:"command"`
}

// Empty says whether nothing is left.
func (r Residue) Empty() bool {
	return !r.Sandbox && len(r.Processes)+len(r.Mounts)+r.Files+len(r.Cgroups)+len(r.Network) == 0
}

// Process reads the state of an inspected or started process; ok is false when there is none.
func (r TaskResult) Process() (state ProcessState, ok bool) {
	var body struct {
		Process *ProcessState `json:"process"`
	}
	if json.Unmarshal(r.Raw, &body) != nil || body.Process == nil {
		return ProcessState{}, false
	}
	return *body.Process, true
}

// Residue reads what a residue or teardown task found; ok is false when it says nothing.
func (r TaskResult) Residue() (residue Residue, ok bool) {
	var body struct {
		Residue *Residue `json:"residue"`
	}
	if json.Unmarshal(r.Raw, &body) != nil || body.Residue == nil {
		return Residue{}, false
	}
	return *body.Residue, true
}
