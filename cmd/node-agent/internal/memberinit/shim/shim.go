// Package shim is the process that runs one command in a member. It is a part of the agent's binary, and of every
// program that links package memberinit: with Arg as its first argument, such a program is only the shim.
//
// Each command of a member, also a probe, costs a start of this binary. The initialisation of the agent's packages
// takes several times what the shim does, so the shim begins before them: Go initialises a package as soon as its
// imports are initialised, and this one imports little. Keep it so.
package shim

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

// Arg is the first argument that makes a program the shim.
const Arg = "member-shim"

// ExitNotStarted is the exit code for a command that could not be started, as a shell's.
const ExitNotStarted = 127

// KillPatience bounds how long a kill of a whole tree may take.
const KillPatience = 10 * time.Second

const (
	// fdSpec is where the shim reads what to run.
	fdSpec = 3
	// exitKilled is the code of a run that was killed.
	exitKilled = 128 + int(unix.SIGKILL)
)

// Spec is what a shim runs. It travels through a pipe and never through arguments or environment,
// where others could read it.
type Spec struct {
	Path       string              `json:"path"`
	Args       []string            `json:"args"`
	Dir        string              `json:"dir"`
	Env        []string            `json:"env"`
	Credential *syscall.Credential `json:"credential,omitempty"`
	// TTY makes the standard input the command's controlling terminal.
	TTY bool `json:"tty,omitempty"`
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		os.Exit(run())
	}
}

// run runs one command as its only child, inherits all that the command leaves behind while it runs,
// and exits with the command's code. On SIGTERM it kills everything below itself.
func run() int {
	spec, err := readSpec()
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "member-shim:", err)
		return ExitNotStarted
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
		return ExitNotStarted
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
	if err := procfs.KillTree(os.Getpid(), KillPatience); err != nil {
		return ExitNotStarted
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

func readSpec() (Spec, error) {
	var spec Spec
	pipe := os.NewFile(fdSpec, "spec")
	defer pipe.Close()
	if err := json.NewDecoder(io.LimitReader(pipe, 4<<20)).Decode(&spec); err != nil {
		return spec, fmt.Errorf("read what to run: %w", err)
	}
	return spec, nil
}
