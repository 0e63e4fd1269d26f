// Package wire is the protocol between the node agent and a member's init process: one request a
// connection on a unix socket, answered by one or more responses, each a JSON document behind a
// four-byte big-endian length. A frame is at most MaxFrame bytes in either direction.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

const (
	// Version is the protocol's number. A member's init outlives the agent that started it, so an upgraded agent may
	// meet an older one and must be able to recognise it.
	Version = 1
	// MaxFrame bounds a frame, in bytes.
	MaxFrame = 8 << 20
	// StreamCap bounds what is kept of each output stream of a run, in bytes.
	StreamCap = 64 << 10
)

// Op names a request's operation.
type Op string

// The operations a member's init answers.
const (
	OpHello   Op = "hello"
	OpRun     Op = "run"
	OpCancel  Op = "cancel"
	OpAck     Op = "ack"
	OpWrite   Op = "write"
	OpPlace   Op = "place"
	OpCommit  Op = "commit"
	OpStart   Op = "start"
	OpStop    Op = "stop"
	OpInspect Op = "inspect"
	// OpProcesses lists the supervised processes; an init of an older agent does not know it.
	OpProcesses Op = "processes"
	// OpExec runs an interactive command; an init of an older agent does not know it.
	OpExec Op = "exec"
	OpExit Op = "exit"
)

// Request is what the agent sends; the field that belongs to Op is set.
type Request struct {
	Op      Op           `json:"op"`
	Run     *Run         `json:"run,omitempty"`
	Key     string       `json:"key,omitempty"`
	File    *File        `json:"file,omitempty"`
	Process *ProcessSpec `json:"process,omitempty"`
	Exec    *Exec        `json:"exec,omitempty"`
	Name    string       `json:"name,omitempty"`
	// Size is how many bytes of File follow an OpPlace, in bytes.
	Size int64 `json:"size,omitempty"`
	// GraceMillis is how long OpExit waits for processes to stop by themselves.
	GraceMillis int64 `json:"graceMillis,omitempty"`
}

// Run is the request to execute a command once. Key identifies it for ever: the same key and fence attach to the
// run that exists or to its stored result.
type Run struct {
	Key     string   `json:"key"`
	Fence   int64    `json:"fence"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	WorkDir string   `json:"workDir,omitempty"`
	User    string   `json:"user,omitempty"`
	Stdin   []byte   `json:"stdin,omitempty"`
	// TimeoutMillis is counted from the start of the command, also for a caller that attaches later.
	TimeoutMillis int64 `json:"timeoutMillis"`
	// Builtin is BuiltinCloudInit to run that part of the init's own program instead of a command.
	Builtin string `json:"builtin,omitempty"`
	// AttachOnly refuses with CodeUnknownRun instead of starting a run that is not known.
	AttachOnly bool `json:"attachOnly,omitempty"`
}

// Exec is the request to run an interactive command. The init answers Done when it has started; from then on the
// connection carries ExecInput one way, and Output and at last a Result the other way. The command ends with the
// connection.
type Exec struct {
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	User    string   `json:"user,omitempty"`
	// Login runs the user's own shell in their home: with Line, for that line; else for a person who types. It takes
	// the place of Command; an init of an older agent refuses it as a command without a program.
	Login bool   `json:"login,omitempty"`
	Line  string `json:"line,omitempty"`
	// Builtin is BuiltinFiles to run that part of the init's own program instead, in the home of the user.
	Builtin string `json:"builtin,omitempty"`
	// TTY gives it a terminal of Rows and Cols, whose output is all stdout.
	TTY  bool   `json:"tty,omitempty"`
	Rows uint16 `json:"rows,omitempty"`
	Cols uint16 `json:"cols,omitempty"`
}

// ExecInput is what the command gets next: data, the end of its input, or another size of its terminal.
type ExecInput struct {
	Data []byte `json:"data,omitempty"`
	End  bool   `json:"end,omitempty"`
	Rows uint16 `json:"rows,omitempty"`
	Cols uint16 `json:"cols,omitempty"`
}

// BuiltinCloudInit applies the user data on standard input; its standard error is its result alone.
const BuiltinCloudInit = "cloud-init"

// BuiltinFiles serves the member's files by SFTP on its input and output.
const BuiltinFiles = "files"

// RunResult is how a run ended. Stdout and Stderr hold everything when it fits StreamCap, else the tail.
type RunResult struct {
	Key       string `json:"key"`
	Fence     int64  `json:"fence"`
	ExitCode  int    `json:"exitCode"`
	Stdout    []byte `json:"stdout"`
	Stderr    []byte `json:"stderr"`
	Truncated bool   `json:"truncated"`
	TimedOut  bool   `json:"timedOut,omitempty"`
	Canceled  bool   `json:"canceled,omitempty"`
}

// File is a file to write atomically inside the member's root. For OpPlace the content comes after the request: the
// init answers Done when it is ready, takes Size raw bytes, and puts the file in its place when OpCommit follows. A
// connection that ends before that leaves nothing. An init that knows no OpPlace refuses it by CodeProtocolUnknown.
type File struct {
	Path     string `json:"path"`
	Mode     uint32 `json:"mode"`
	Owner    string `json:"owner,omitempty"`
	Content  []byte `json:"content"`
	MakeDirs bool   `json:"makeDirs,omitempty"`
	// OwnDirs gives the directories that are created to Owner too.
	OwnDirs bool `json:"ownDirs,omitempty"`
}

// ProcessSpec describes a supervised process. It is not nodetask.StartProcess: every default is filled in and every
// secret opened, and an init of an older agent must be able to read it. A test of package task holds the two together.
type ProcessSpec struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	WorkDir string   `json:"workDir,omitempty"`
	User    string   `json:"user,omitempty"`
	// Policy is never, on_failure or always.
	Policy string `json:"policy"`
	// MaxRestarts of 0 means no bound.
	MaxRestarts       int    `json:"maxRestarts,omitempty"`
	BackoffMillis     int64  `json:"backoffMillis,omitempty"`
	StopSignal        string `json:"stopSignal,omitempty"`
	StopTimeoutMillis int64  `json:"stopTimeoutMillis,omitempty"`
}

// Supervised is how a supervised process has fared since it was last started by a request.
type Supervised struct {
	Name string `json:"name"`
	// Since names that start.
	Since string `json:"since"`
	// Restarts counts from then on.
	Restarts int `json:"restarts"`
	// Spent reports that it ended and has no restart left.
	Spent bool `json:"spent,omitempty"`
}

// Process is what is known of a supervised process. State is running, exited, failed or absent; PID is
// the number inside the member.
type Process struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	PID       int    `json:"pid,omitempty"`
	Restarts  int    `json:"restarts"`
	ExitCode  *int   `json:"exitCode,omitempty"`
	StartedAt string `json:"startedAt,omitempty"`
	LogTail   string `json:"logTail,omitempty"`
}

// Hello names the init that answers: its protocol version and epoch.
type Hello struct {
	Version int    `json:"version"`
	Epoch   string `json:"epoch"`
	Mode    string `json:"mode"`
}

// Output is a piece of a run's output; Offset counts raw bytes from the stream's start.
type Output struct {
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// Response answers a request: Output frames while a run goes on, then exactly one of the others.
type Response struct {
	Error   *Error     `json:"error,omitempty"`
	Hello   *Hello     `json:"hello,omitempty"`
	Output  *Output    `json:"output,omitempty"`
	Result  *RunResult `json:"result,omitempty"`
	Process *Process   `json:"process,omitempty"`
	Done    bool       `json:"done,omitempty"`
	// Supervised answers OpProcesses.
	Supervised []Supervised `json:"supervised,omitempty"`
}

// Write sends one frame. It fails when the document is larger than MaxFrame or the writer fails.
func Write(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("frame of %d bytes exceeds the limit of %d", len(body), MaxFrame)
	}
	frame := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body))) // #nosec G115 -- at most MaxFrame
	if _, err := w.Write(append(frame, body...)); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

// Read receives one frame into v. The error wraps io.EOF when the peer closed between frames.
func Read(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("receive frame: %w", err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > MaxFrame {
		return fmt.Errorf("frame of %d bytes exceeds the limit of %d", size, MaxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("receive frame: %w", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	return nil
}
