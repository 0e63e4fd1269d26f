package nodetask

// EnvVar is one environment variable: a value in clear, a sealed value, or the value of a runtime secret. With none of
// the three it is empty.
type EnvVar struct {
	// Name is letters, digits and underscores, at most 128, not starting with a digit.
	Name string `json:"name"`
	// Value is the value in clear.
	Value *string `json:"value,omitempty"`
	// Sealed is the value sealed to the node, base64.
	Sealed *string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the node.
	SecretRef *string `json:"secretRef,omitempty"`
}

// Run runs a command to its end; an exit code other than 0 fails the task.
type Run struct {
	// Command is the program and its arguments, 1 to 1,024; no shell is involved.
	Command []string `json:"command"`
	// Env is added to a small fixed environment, at most 512 variables, each with at most one of value, sealed and
	// secretRef.
	Env []EnvVar `json:"env,omitempty"`
	// WorkDir is an absolute path; empty means the member's root.
	WorkDir string `json:"workDir,omitempty"`
	// User is "user" or "user:group" of the member, by name or number; empty means root.
	User string `json:"user,omitempty"`
	// Stdin is the text that the command reads from its standard input.
	Stdin string `json:"stdin,omitempty"`
}

// WriteFile writes a file into the member's file system, whole or not at all. At most one of content, contentBase64,
// sealed and secretRef is given; with none the file is empty.
type WriteFile struct {
	// Path is absolute and names a file.
	Path string `json:"path"`
	// Mode is octal, such as "0644", which is the default.
	Mode string `json:"mode,omitempty"`
	// Owner is "user" or "user:group" of the member; empty means root.
	Owner string `json:"owner,omitempty"`
	// Content is the file's text.
	Content *string `json:"content,omitempty"`
	// ContentBase64 is the file's bytes, base64.
	ContentBase64 *string `json:"contentBase64,omitempty"`
	// Sealed is the file's bytes sealed to the node, base64.
	Sealed *string `json:"sealed,omitempty"`
	// SecretRef is the id of a runtime secret that is bound to the node: the file holds its value.
	SecretRef *string `json:"secretRef,omitempty"`
	// MakeDirs creates the missing directories above the file.
	MakeDirs bool `json:"makeDirs,omitempty"`
}

// Restart says when a supervised process that ended is started again.
type Restart struct {
	// Policy is "never", which is the default, "on_failure" or "always".
	Policy string `json:"policy,omitempty"`
	// MaxRestarts bounds how often, 0 to 1,000,000; 0 or absent means no bound.
	MaxRestarts int `json:"maxRestarts,omitempty"`
	// BackoffSeconds is the pause before the first restart, 0 to 3,600, fractions too; 0 or absent means 1. The pause
	// doubles from one restart to the next, up to 30 seconds.
	BackoffSeconds float64 `json:"backoffSeconds,omitempty"`
}

// StartProcess starts a supervised process, which must stay in the foreground. The same name with the same details
// changes nothing; with other details the task fails.
type StartProcess struct {
	// Name identifies the process within the member: letters, digits, dot, dash, underscore, at most 64.
	Name string `json:"name"`
	// Command is the program and its arguments, 1 to 1,024; no shell is involved.
	Command []string `json:"command"`
	// Env is added to a small fixed environment, at most 512 variables, each with at most one of value, sealed and
	// secretRef.
	Env []EnvVar `json:"env,omitempty"`
	// WorkDir is an absolute path; empty means the member's root.
	WorkDir string `json:"workDir,omitempty"`
	// User is "user" or "user:group" of the member, by name or number; empty means root.
	User string `json:"user,omitempty"`
	// Restart says when the process is started again after its end.
	Restart Restart `json:"restart,omitzero"`
	// StopSignal is the signal that requests the process's end, such as "SIGTERM", which is the default.
	StopSignal string `json:"stopSignal,omitempty"`
	// StopTimeoutSeconds is the time from that signal to SIGKILL, 0 to 3,600, fractions too; 0 or absent means 10.
	StopTimeoutSeconds float64 `json:"stopTimeoutSeconds,omitempty"`
}

// StopProcess stops a supervised process; one that is absent is a success.
type StopProcess struct {
	// Name identifies the process within the member.
	Name string `json:"name"`
}

// InspectProcess reads the state of a supervised process.
type InspectProcess struct {
	// Name identifies the process within the member.
	Name string `json:"name"`
}

// ExecProbe succeeds when the command exits with 0.
type ExecProbe struct {
	// Command is the program and its arguments, 1 to 1,024; no shell is involved.
	Command []string `json:"command"`
}

// TCPProbe succeeds when the port accepts a connection.
type TCPProbe struct {
	// Port is 1 to 65,535.
	Port int `json:"port"`
	// Host is a host name or an address; empty means the node itself.
	Host string `json:"host,omitempty"`
}

// HTTPProbe succeeds when a GET is answered with the expected status; redirects are not followed.
type HTTPProbe struct {
	// Port is 1 to 65,535.
	Port int `json:"port"`
	// Path begins with a slash; it may hold a query.
	Path string `json:"path,omitempty"`
	// Host is a host name or an address; empty means the node itself.
	Host string `json:"host,omitempty"`
	// ExpectStatus is 100 to 599; 0 or absent means any of 200 to 399.
	ExpectStatus int `json:"expectStatus,omitempty"`
}

// Probe checks that something answers, several times where that is necessary: exactly one of exec, tcp and http.
type Probe struct {
	// Exec succeeds when a command in the member exits with 0.
	Exec *ExecProbe `json:"exec,omitempty"`
	// TCP succeeds when a port accepts a connection.
	TCP *TCPProbe `json:"tcp,omitempty"`
	// HTTP succeeds when a GET is answered with the expected status; redirects are not followed.
	HTTP *HTTPProbe `json:"http,omitempty"`
	// Attempts is the most attempts, up to 3,600; 0 or absent means 1.
	Attempts int `json:"attempts,omitempty"`
	// IntervalSeconds is the pause between two attempts, 0 to 3,600, fractions too; 0 or absent means 1.
	IntervalSeconds float64 `json:"intervalSeconds,omitempty"`
	// TimeoutSeconds bounds each attempt, 0 to 3,600, fractions too; 0 or absent means 5.
	TimeoutSeconds float64 `json:"timeoutSeconds,omitempty"`
}

// FetchArtifact brings an artifact onto the node, verified byte by byte against its digest, and places it in the
// member's file system. Parts that the node has already are not fetched again, so the same task again is cheap.
type FetchArtifact struct {
	// Digest is the artifact, "sha256:" and 64 hexadecimal digits: one that the instance's manifest pins, or an active
	// one of the instance's tenant.
	Digest string `json:"digest"`
	// Path is absolute: the file of a blob, the folder of everything else.
	Path string `json:"path"`
	// As is how the artifact is placed: "oci_layout", an OCI image layout, the default for images; "files", the files
	// of its layers by their titles, the default for other artifacts; "file", the default for blobs.
	As string `json:"as,omitempty"`
	// Platform selects the image of an index, such as "linux/amd64"; empty means the node's own.
	Platform string `json:"platform,omitempty"`
	// Mode is octal, for the files; empty means 0644.
	Mode string `json:"mode,omitempty"`
	// Owner is "user" or "user:group" of the member; empty means root.
	Owner string `json:"owner,omitempty"`
}

// CloudInit applies cloud-init user data in the member, to its end, as a first boot would: exactly one of userData and
// userDataSealed. The same instance id again changes nothing.
type CloudInit struct {
	// UserData is the document, beginning with "#cloud-config" or another form that cloud-init knows; at most 64 KiB.
	UserData string `json:"userData,omitempty"`
	// UserDataSealed is the document sealed to the node, base64.
	UserDataSealed *string `json:"userDataSealed,omitempty"`
	// InstanceID is cloud-init's id for the member; another id is another first boot.
	InstanceID string `json:"instanceId"`
	// Hostname is the member's own name in its metadata; empty means the node's.
	Hostname string `json:"hostname,omitempty"`
}

// ResidueQuery lists everything of the member that is left on the node.
type ResidueQuery struct{}

// Teardown stops everything of the member and deletes its sandbox.
type Teardown struct{}

// TaskKind returns RUN.
func (Run) TaskKind() Kind { return KindRun }

// TaskKind returns WRITE_FILE.
func (WriteFile) TaskKind() Kind { return KindWriteFile }

// TaskKind returns START_PROCESS.
func (StartProcess) TaskKind() Kind { return KindStartProcess }

// TaskKind returns STOP_PROCESS.
func (StopProcess) TaskKind() Kind { return KindStopProcess }

// TaskKind returns INSPECT_PROCESS.
func (InspectProcess) TaskKind() Kind { return KindInspectProcess }

// TaskKind returns PROBE.
func (Probe) TaskKind() Kind { return KindProbe }

// TaskKind returns FETCH_ARTIFACT.
func (FetchArtifact) TaskKind() Kind { return KindFetchArtifact }

// TaskKind returns CLOUD_INIT.
func (CloudInit) TaskKind() Kind { return KindCloudInit }

// TaskKind returns RESIDUE.
func (ResidueQuery) TaskKind() Kind { return KindResidue }

// TaskKind returns TEARDOWN.
func (Teardown) TaskKind() Kind { return KindTeardown }
