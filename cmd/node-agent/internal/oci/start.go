package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/spaces"
)

// Start is a container to be started.
type Start struct {
	Container Container
	Layers    Layers
	// Cgroups has the container's Group, which may be there already.
	Cgroups *Cgroups
	Group   string
	// Bundle is a folder for the configuration; Log takes what the runtime and process 1 print. It is a file and never
	// a pipe: process 1 keeps it.
	Bundle string
	Log    *os.File
	// Listener is handed to process 1 as descriptor 3.
	Listener *os.File
	// Attach fills the container's network namespace, which is that of process pid. It may run while the container
	// starts; Start waits for it. It is nil without a network.
	Attach func(pid int) error
	// Created is called with the process number of process 1 when the container is there.
	Created func(pid int) error
}

// Start makes a container and starts it. What of it is there after an error is removed by Delete, and runs nothing.
func (r *Runtime) Start(ctx context.Context, start Start) error {
	if err := errors.Join(makeAssembly(), os.MkdirAll(r.state, 0o700)); err != nil {
		return err
	}
	if r.known {
		return r.startAtOnce(ctx, start)
	}
	return r.startInSteps(ctx, start)
}

// startAtOnce has the container join namespaces of users and network that the agent has created. So the network is set
// up while the runtime works, and one call of the runtime is enough.
func (r *Runtime) startAtOnce(ctx context.Context, start Start) error {
	space, err := spaces.Open(start.Container.IDs, start.Attach != nil)
	if err != nil {
		return err
	}
	defer space.Close()
	attached := start.attach(space.PID())
	pid, err := r.runIn(ctx, start, space)
	if err = errors.Join(err, <-attached); err == nil {
		err = start.Created(pid)
	}
	if err != nil && pid > 0 {
		_ = unix.Kill(pid, unix.SIGKILL) // it has run nothing but the agent's own init
	}
	return err
}

func (s Start) attach(pid int) <-chan error {
	attached := make(chan error, 1)
	go func() {
		var err error
		if s.Attach != nil {
			err = s.Attach(pid)
		}
		attached <- err
	}()
	return attached
}

func (r *Runtime) runIn(ctx context.Context, start Start, space *spaces.Spaces) (pid int, err error) {
	joined := map[specs.LinuxNamespaceType]string{specs.UserNamespace: space.Path("user")}
	if start.Attach != nil {
		joined[specs.NetworkNamespace] = space.Path("net")
	}
	spec, err := start.Container.spec(atRoot, atDevices, joined)
	if err != nil {
		return 0, err
	}
	resources, own := spec.Linux.Resources, r.leavesGroups(start)
	if own {
		spec.Linux.Resources, spec.Linux.CgroupsPath = nil, ""
	}
	key := r.filters.apply(spec)
	if err := start.configure(spec); err != nil {
		return 0, err
	}
	err = apart(func() error {
		if err := start.Layers.assemble(space.Path("user"), start.Container.IDs, start.Container.Devices); err != nil {
			return err
		}
		if own {
			if err := start.Cgroups.Enter(start.Group, resources); err != nil {
				return err
			}
		}
		pid, err = r.make(ctx, start, own, "run", "--detach")
		return err
	})
	if err == nil {
		r.filters.keep(key, filepath.Join(r.state, start.Container.ID, filterFile))
	}
	return pid, err
}

// leavesGroups reports whether the agent creates the container's cgroup and the runtime leaves cgroups alone: version 1
// lets a process be born in the group, and crun has an option to leave them.
func (r *Runtime) leavesGroups(start Start) bool {
	return r.Name == "crun" && start.Cgroups.Version == 1
}

// startInSteps is for runtimes of which nothing is known but the calls that all have: they make their own namespaces.
func (r *Runtime) startInSteps(ctx context.Context, start Start) error {
	spec, err := start.Container.spec(atRoot, atDevices, nil)
	if err != nil {
		return err
	}
	if err := start.configure(spec); err != nil {
		return err
	}
	return apart(func() error {
		space, err := spaces.Open(start.Container.IDs, false)
		if err != nil {
			return err
		}
		defer space.Close()
		if err := start.Layers.assemble(space.Path("user"), start.Container.IDs, start.Container.Devices); err != nil {
			return err
		}
		pid, err := r.make(ctx, start, false, "create")
		if err == nil {
			err = start.Created(pid)
		}
		if err == nil {
			err = <-start.attach(pid)
		}
		if err != nil {
			return err
		}
		return r.call(ctx, "start", start.Container.ID)
	})
}

func (s Start) configure(spec *specs.Spec) error {
	return durable.NoteJSON(filepath.Join(s.Bundle, "config.json"), spec, 0o600)
}

// make calls the runtime with the log and the listener, and reads the number of process 1.
func (r *Runtime) make(ctx context.Context, start Start, leaveGroups bool, verb ...string) (int, error) {
	file := filepath.Join(start.Bundle, "pid")
	_ = os.Remove(file)
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if leaveGroups {
		verb = append([]string{"--cgroup-manager", "disabled"}, verb...)
	}
	cmd := r.command(ctx, append(verb, "--bundle", start.Bundle, "--pid-file", file, "--preserve-fds", "1",
		start.Container.ID)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = start.Log, start.Log, []*os.File{start.Listener}
	if r.Name == "crun" {
		if err := r.sealed(cmd); err != nil {
			return 0, err
		}
	}
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s %s: %w: %s", r.Name, strings.Join(verb, " "), err, tail(start.Log.Name()))
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.Name, err)
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}
