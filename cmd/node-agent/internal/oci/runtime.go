package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// callPatience bounds a call of the runtime.
const callPatience = 30 * time.Second

// Runtime is an OCI runtime of the node with the folder in which it keeps what it knows of containers.
type Runtime struct {
	// Name is such as "crun", Program its path, and Version what it says of itself.
	Name, Program, Version string
	state                  string
	// known says that the runtime is one of those in oldest, which join namespaces and run at once.
	known   bool
	filters filters
}

// oldest are the runtimes that the agent can call, each with the oldest version that has what members need: namespaces
// of users, open files that are passed on, and system calls by name.
var oldest = map[string][3]int{"crun": {1, 4, 5}, "runc": {1, 1, 0}}

var versionForm = regexp.MustCompile(`(?m)version (\d+)\.(\d+)(?:\.(\d+))?`)

// Find looks for a runtime by name or path. State is where it keeps what it knows of the agent's containers. Its errors
// carry a code and name the remedy.
func Find(ctx context.Context, program, state string) (*Runtime, error) {
	name := filepath.Base(program)
	least, known := oldest[name]
	if !known {
		return nil, wire.Errorf(wire.CodeRuntimeMissing,
			"runtime: %q is not one that the agent can call; use crun or runc", program)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, wire.Errorf(wire.CodeRuntimeMissing,
			"the OCI runtime %s is not installed; install the package %s of version %s or later",
			program, name, dotted(least))
	}
	r := &Runtime{Name: name, Program: path, state: state, known: true}
	out, err := versionText(ctx, path)
	if err != nil {
		return nil, wire.Errorf(wire.CodeRuntimeMissing,
			"the OCI runtime %s does not run (%v); install the package %s again", path, err, name)
	}
	found := versionForm.FindStringSubmatch(out)
	if found == nil {
		return nil, wire.Errorf(wire.CodeRuntimeTooOld,
			"the OCI runtime %s does not report its version; install %s or later", path, dotted(least))
	}
	var version [3]int
	for i := range version {
		version[i], _ = strconv.Atoi(found[i+1])
	}
	r.Version = dotted(version)
	if older(version, least) {
		return nil, wire.Errorf(wire.CodeRuntimeTooOld,
			"the OCI runtime %s is of version %s; install %s or later", path, r.Version, dotted(least))
	}
	return r, nil
}

// FindFor looks for the runtime of a further class of isolation, by name or path. Which programs serve it is the node's
// configuration; whether one does is found out by trying it.
func FindFor(ctx context.Context, class, program, state string) (*Runtime, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, wire.Errorf(wire.CodeRuntimeMissing, "the OCI runtime %s of class %s is not installed",
			program, class)
	}
	out, err := versionText(ctx, path)
	if err != nil {
		return nil, wire.Errorf(wire.CodeRuntimeMissing, "the OCI runtime %s of class %s does not run: %v", path,
			class, err)
	}
	r := &Runtime{Name: filepath.Base(program), Program: path, state: state}
	first, _, _ := strings.Cut(out, "\n")
	if fields := strings.Fields(first); len(fields) > 0 {
		r.Version = fields[len(fields)-1]
	}
	return r, nil
}

// Gone is a runtime that is not there. It can only forget what an earlier one kept in its folder.
func Gone(state string) *Runtime { return &Runtime{state: state} }

// versionText returns what a runtime prints of its version.
func versionText(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	return string(out), err
}

func dotted(version [3]int) string {
	return fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2])
}

func older(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func (r *Runtime) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Program, append([]string{"--root", r.state}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"XDG_RUNTIME_DIR=/run"}
	return cmd
}

// call is for what leaves no process behind that could keep the pipe.
func (r *Runtime) call(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	if out, err := r.command(ctx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", r.Name, args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// Delete kills what lives of a container and removes what the runtime knows of it, its cgroups with it. An unknown
// container is not an error.
func (r *Runtime) Delete(ctx context.Context, id string) error {
	if !r.Knows(id) {
		return nil
	}
	if _, err := exec.LookPath(r.Program); err != nil { // the caller has ended what lived
		return r.forget(id)
	}
	return apart(func() (err error) {
		for range 2 { // crun fails where the init ends between its look and its kill
			if err = r.call(ctx, "delete", "--force", id); err == nil || !r.Knows(id) {
				return nil
			}
		}
		return errors.Join(err, r.forget(id)) // a call that was killed half way leaves what it cannot read
	})
}

// forget removes what the runtime keeps of a container.
func (r *Runtime) forget(id string) (err error) {
	for _, left := range r.kept(id) {
		err = errors.Join(err, os.RemoveAll(left))
	}
	return err
}

// Knows reports whether the runtime keeps something of a container.
func (r *Runtime) Knows(id string) bool {
	return len(r.kept(id)) > 0
}

// kept are the runtime's folder of a container, or its files, such as ID_sandbox:ID.state.
func (r *Runtime) kept(id string) (found []string) {
	for _, pattern := range []string{id, id + "_*", id + ".*"} {
		names, _ := filepath.Glob(filepath.Join(r.state, pattern))
		found = append(found, names...)
	}
	return found
}

// tail gives the end of a log.
func tail(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(raw[max(0, len(raw)-1000):]))
}
