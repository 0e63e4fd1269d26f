package memberinit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

const (
	// fdShim is where the shim reads what to run.
	fdShim = 3
	// exitNotStarted is the shim's exit code for a command that could not be started, as a shell's.
	exitNotStarted = 127
	// exitKilled is the code of a run that was killed.
	exitKilled = 128 + int(unix.SIGKILL)
	// killPatience bounds how long a kill of a whole tree may take.
	killPatience = 10 * time.Second
)

// shimSpec is what a shim runs. It travels through a pipe and never through arguments or environment,
// where others could read it.
type shimSpec struct {
	Path       string              `json:"path"`
	Args       []string            `json:"args"`
	Dir        string              `json:"dir"`
	Env        []string            `json:"env"`
	Credential *syscall.Credential `json:"credential,omitempty"`
	// TTY makes the standard input the command's controlling terminal.
	TTY bool `json:"tty,omitempty"`
}

// shim runs one command as its only child, inherits all that the command leaves behind while it runs,
// and exits with the command's code. On SIGTERM it kills everything below itself.
func shim() int {
	spec, err := readShimSpec()
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "member-shim:", err)
		return exitNotStarted
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, unix.SIGTERM)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reap := reaper.New()
	_, ended, err := reap.Start(reaper.Child{
		Path: spec.Path, Args: spec.Args, Dir: spec.Dir, Env: spec.Env, Credential: spec.Credential, TTY: spec.TTY,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "member-shim:", err)
		return exitNotStarted
	}
	releaseOutput()
	go reap.Run(ctx)
	select {
	case code := <-ended:
		return code
	case <-terminate:
		return killOwnTree()
	}
}

func killOwnTree() int {
	if err := procfs.KillTree(os.Getpid(), killPatience); err != nil {
		return exitNotStarted
	}
	return exitKilled
}

// releaseOutput lets go of the command's pipes, so that their end is the command's end.
func releaseOutput() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(null)
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
}

func readShimSpec() (shimSpec, error) {
	var spec shimSpec
	pipe := os.NewFile(fdShim, "spec")
	defer pipe.Close()
	if err := json.NewDecoder(io.LimitReader(pipe, 4<<20)).Decode(&spec); err != nil {
		return spec, fmt.Errorf("read what to run: %w", err)
	}
	return spec, nil
}
