package nodetask

import (
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// EnvVar is one environment variable: a plain value, a sealed one or a runtime secret's; with none of them it is
// empty.
type EnvVar struct {
	// Name is letters, digits and underscores, at most 128, not starting with a digit.
	Name string `json:"name"`
	// Value is the value in clear.
	Value *string `json:"value,omitempty"`
	// Sealed is the value sealed to the node, base64.
	Sealed *string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the node.
	SecretRef *ids.ID `json:"secretRef,omitempty"`
}

// Run runs a command to its end; an exit code other than 0 fails the task.
type Run struct {
	// Command is the program and its arguments, 1 to 1,024; no shell is involved.
	Command []string `json:"command"`
	// Env is added to a small fixed environment, at most 512 variables.
	Env []EnvVar `json:"env,omitempty"`
	// WorkDir is an absolute path; empty means the member's root.
	WorkDir string `json:"workDir,omitempty"`
	// User is "user" or "user:group" of the member, by name or number; empty means root.
	User string `json:"user,omitempty"`
	// Stdin is what it reads.
	Stdin string `json:"stdin,omitempty"`
}

// WriteFile writes a file into the member's file system, whole or not at all. At most one of
// Content, ContentBase64, Sealed and SecretRef is given; with none the file is empty.
type WriteFile struct {
	// Path is absolute and names a file.
	Path string `json:"path"`
	// Mode is octal, such as "0644", which is the default.
	Mode string `json:"mode,omitempty"`
	// Owner is "user" or "user:group" of the member; empty means root.
	Owner string `json:"owner,omitempty"`
	// Content is text.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is bytes.
	ContentBase64 *string `json:"contentBase64,omitempty"`
	// Sealed is bytes sealed to the node, base64.
	Sealed *string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the node.
	SecretRef *ids.ID `json:"secretRef,omitempty"`
	// MakeDirs makes missing directories above it.
	MakeDirs bool `json:"makeDirs,omitempty"`
}

// Restart says when a supervised process that ended is started again.
type Restart struct {
	// Policy is "never", which is the default, "on_failure" or "always".
	Policy string `json:"policy,omitempty"`
	// MaxRestarts bounds how often; 0 means no bound.
	MaxRestarts int `json:"maxRestarts,omitempty"`
	// BackoffSeconds is the pause before each, 0 to 3,600; 0 or absent means 1.
	BackoffSeconds float64 `json:"backoffSeconds,omitempty"`
}

// StartProcess starts a supervised process, which must stay in the foreground. The same name with
// the same details is a no-op; with others the task fails.
type StartProcess struct {
	// Name identifies it within the member: letters, digits, dot, dash, underscore, at most 64.
	Name string `json:"name"`
	// Command, Env, WorkDir and User are as for Run.
	Command []string `json:"command"`
	Env     []EnvVar `json:"env,omitempty"`
	WorkDir string   `json:"workDir,omitempty"`
	User    string   `json:"user,omitempty"`
	// Restart is what happens when it ends.
	Restart Restart `json:"restart,omitzero"`
	// StopSignal asks it to stop, such as "SIGTERM", which is the default.
	StopSignal string `json:"stopSignal,omitempty"`
	// StopTimeoutSeconds is how long it has before it is killed, 0 to 3,600; 0 or absent means 10.
	StopTimeoutSeconds float64 `json:"stopTimeoutSeconds,omitempty"`
}

// StopProcess stops a supervised process; one that is absent is a success.
type StopProcess struct {
	// Name identifies it within the member.
	Name string `json:"name"`
}

// InspectProcess asks how a supervised process is.
type InspectProcess struct {
	// Name identifies it within the member.
	Name string `json:"name"`
}

// ExecProbe succeeds when the command exits with 0.
type ExecProbe struct {
	// Command is as for Run.
	Command []string `json:"command"`
}

// TCPProbe succeeds when the port accepts a connection.
type TCPProbe struct {
	// Port is 1 to 65,535.
	Port int `json:"port"`
	// Host is empty for the node itself.
	Host string `json:"host,omitempty"`
}

// HTTPProbe succeeds when a GET is answered with the expected status; redirects are not followed.
type HTTPProbe struct {
	// Port is 1 to 65,535.
	Port int `json:"port"`
	// Path begins with a slash; it may hold a query.
	Path string `json:"path,omitempty"`
	// Host is empty for the node itself.
	Host string `json:"host,omitempty"`
	// ExpectStatus is 100 to 599; 0 or absent means any of 200 to 399.
	ExpectStatus int `json:"expectStatus,omitempty"`
}

// Probe checks that something answers, several times if need be: exactly one of Exec, TCP and HTTP.
type Probe struct {
	Exec *ExecProbe `json:"exec,omitempty"`
	TCP  *TCPProbe  `json:"tcp,omitempty"`
	HTTP *HTTPProbe `json:"http,omitempty"`
	// Attempts is how often at most, up to 3,600; 0 or absent means once.
	Attempts int `json:"attempts,omitempty"`
	// IntervalSeconds is the pause between two, 0 to 3,600; 0 or absent means 1.
	IntervalSeconds float64 `json:"intervalSeconds,omitempty"`
	// TimeoutSeconds bounds each, 0 to 3,600; 0 or absent means 5.
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
}

// FetchArtifact brings an artifact onto the node, verified byte by byte against its digest, and places it in the
// member's file system. What the node has already is not fetched again.
type FetchArtifact struct {
	// Digest is the artifact, `sha256:` and 64 hexadecimal digits: one that the instance's manifest pins, or an active
	// one of its own tenant.
	Digest string `json:"digest"`
	// Path is absolute: the file for a blob, the folder for everything else.
	Path string `json:"path"`
	// As is how it is placed: "oci_layout", an OCI image layout, which is the default for images; "files", the files
	// of its layers by their titles, the default for other artifacts; "file", the default for a blob.
	As string `json:"as,omitempty"`
	// Platform is which image of an index is wanted, such as "linux/amd64"; empty for the node's own.
	Platform string `json:"platform,omitempty"`
	// Mode is octal, of the files; empty means 0644.
	Mode string `json:"mode,omitempty"`
	// Owner is "user" or "user:group" of the member; empty means root.
	Owner string `json:"owner,omitempty"`
}

// CloudInit applies cloud-init user data in the member, to its end, as a first boot would. The same instance id again
// changes nothing.
type CloudInit struct {
	// UserData is the document, beginning with #cloud-config or another form that cloud-init knows; at most 64 KiB.
	UserData string `json:"userData,omitempty"`
	// UserDataSealed is the document sealed to the node, base64; exactly one of the two is given.
	UserDataSealed *string `json:"userDataSealed,omitempty"`
	// InstanceID is what cloud-init takes the member for; another one is another first boot.
	InstanceID string `json:"instanceId"`
	// Hostname is the member's own name in its metadata; empty for the node's.
	Hostname string `json:"hostname,omitempty"`
}

// Residue asks what of the member is left on the node.
type Residue struct{}

// Teardown stops everything of the member and deletes its sandbox.
type Teardown struct{}

// Kind is RUN.
func (*Run) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskRun }

// Kind is WRITE_FILE.
func (*WriteFile) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskWriteFile }

// Kind is START_PROCESS.
func (*StartProcess) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskStartProcess }

// Kind is STOP_PROCESS.
func (*StopProcess) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskStopProcess }

// Kind is INSPECT_PROCESS.
func (*InspectProcess) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskInspectProcess }

// Kind is PROBE.
func (*Probe) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskProbe }

// Kind is FETCH_ARTIFACT.
func (*FetchArtifact) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskFetchArtifact }

// Kind is CLOUD_INIT.
func (*CloudInit) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskCloudInit }

// Kind is RESIDUE.
func (*Residue) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskResidue }

// Kind is TEARDOWN.
func (*Teardown) Kind() lifecycle.NodeTaskKind { return lifecycle.TaskTeardown }

// The fields that each kind knows.
var (
	envFields   = fields{"name": nil, "value": nil, "sealed": nil, "secretRef": nil}
	runFields   = fields{"command": nil, "env": envFields, "workDir": nil, "user": nil, "stdin": nil}
	writeFields = fields{"path": nil, "mode": nil, "owner": nil, "content": nil, "contentBase64": nil, "sealed": nil, "secretRef": nil,
		"makeDirs": nil}
	startFields = fields{"name": nil, "command": nil, "env": envFields, "workDir": nil, "user": nil,
		"restart":    fields{"policy": nil, "maxRestarts": nil, "backoffSeconds": nil},
		"stopSignal": nil, "stopTimeoutSeconds": nil}
	nameFields  = fields{"name": nil}
	fetchFields = fields{"digest": nil, "path": nil, "as": nil, "platform": nil, "mode": nil, "owner": nil}
	cloudFields = fields{"userData": nil, "userDataSealed": nil, "instanceId": nil, "hostname": nil}
	probeFields = fields{"exec": fields{"command": nil}, "tcp": fields{"port": nil, "host": nil},
		"http":     fields{"port": nil, "path": nil, "host": nil, "expectStatus": nil},
		"attempts": nil, "intervalSeconds": nil, "timeoutSeconds": nil}
)
