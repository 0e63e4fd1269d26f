package memberinit

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/cloudinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/files"
)

// The hidden first arguments under which the agent's binary becomes a part of a member.
const (
	// ArgContainer serves a member as process 1 of its container.
	ArgContainer = "member-init"
	// ArgBoot prepares a member without walls and becomes its init.
	ArgBoot = "member-boot"
	// ArgInit serves a member without walls.
	ArgInit = "member-plain-init"
	// ArgCloudInit applies user data in a member.
	ArgCloudInit = "member-cloud-init"
	// ArgFiles serves files of a member.
	ArgFiles = "member-files"
)

// The descriptors that boot and init are started with. Those that boot places itself are beyond all
// that the runtime may have opened by then.
const (
	fdContainer = 3   // the unix socket, in a container
	fdStatus    = 3   // a line is written here when the member is ready, or why it is not
	fdListen    = 100 // the unix socket
	fdState     = 101 // the state directory
)

// Dispatch runs the hidden command that args name and exits the process; it returns when they name none. Every program
// that uses package sandbox calls it first, tests included.
func Dispatch(args []string) {
	if len(args) < 2 {
		return
	}
	var err error
	switch args[1] {
	case ArgBoot:
		err = boot(args[2:])
	case ArgInit:
		err = serve(inherited())
	case ArgContainer:
		err = serve(contained())
	case ArgCloudInit:
		os.Exit(cloudinit.Main())
	case ArgFiles:
		os.Exit(files.Main(args[2:]))
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Settings is what the agent hands to a member's init, in SettingsFile; it holds no secret.
type Settings struct {
	// Dir is the member's directory on the node.
	Dir string `json:"dir"`
	// MemberID and InstanceID are handed to every command in its environment.
	MemberID   string `json:"memberId"`
	InstanceID string `json:"instanceId"`
	// Epoch distinguishes this life of the member's init from others.
	Epoch string `json:"epoch"`
	// Mode is ModeContainer or ModeProcess.
	Mode string `json:"mode"`
	// Root is the directory that is the member's filesystem: / in a container.
	Root string `json:"root"`
	// Env is added to the environment of every command: what the member's devices want.
	Env []string `json:"env,omitempty"`
	// LogBytes bounds what is kept of the lines of each process, in bytes; 0 is logfile.DefaultBound.
	LogBytes int64 `json:"logBytes,omitempty"`
}

// The modes of isolation.
const (
	ModeContainer = "container"
	ModeProcess   = "process"
)

// The environment by which a member's processes know, and are known by, their member.
const (
	EnvMember   = "GPUAAS_MEMBER_ID"
	EnvInstance = "GPUAAS_INSTANCE_ID"
	// EnvRoot is the directory that is / in paths of tasks: empty in a container.
	EnvRoot = "GPUAAS_MEMBER_ROOT"
)

// The names in a member's directory on the node.
const (
	DirFS        = "fs"        // overlay upper and work, perhaps on a tmpfs
	DirRoot      = "root"      // the root of a member without walls
	DirRun       = "run"       // the socket
	DirState     = "state"     // results, logs
	SocketName   = "init.sock" // in DirRun
	DirScratch   = "scratch"   // in DirFS: what is at ScratchPath in a container
	DirLogs      = "logs"      // in DirState: a folder for each supervised process, see package logfile
	dirProcesses = "processes" // in DirState: logs by inits of earlier agents
	initLog      = "init.log"  // in DirState
	// SettingsFile in DirState is written by the agent before it starts the init.
	SettingsFile = "settings.json"
)

// ScratchPath is where a member finds a directory on no overlay.
const ScratchPath = "/scratch"

// MountSource is the source under which a member's overlay is mounted, so that it is found in any mount table. It
// distinguishes members of several agents on one machine without naming a path.
func MountSource(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("gpuaas:%s:%x", filepath.Base(dir), sum[:6])
}
