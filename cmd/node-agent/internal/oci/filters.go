package oci

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

const (
	// filterFile is where crun leaves a container's compiled filter of system calls, in its folder.
	filterFile = "seccomp.bpf"
	// filterAnnotation hands crun a compiled filter; a runtime that does not know it compiles the configuration's.
	filterAnnotation = "run.oci.seccomp_bpf_data"
	// maxFilters bounds how many are kept; there is one for each profile.
	maxFilters = 8
)

// filters are those that the runtime has compiled for earlier containers: to compile one takes longer than all else
// that it does. They are kept in the agent's memory, by what they were compiled from.
type filters struct {
	mu       sync.Mutex
	compiled map[[sha256.Size]byte]string
}

// apply adds the compiled filter to a configuration where there is one, and returns by what it is known.
func (f *filters) apply(spec *specs.Spec) (key [sha256.Size]byte) {
	source, err := json.Marshal(spec.Linux.Seccomp)
	if err != nil {
		return key
	}
	key = sha256.Sum256(source)
	f.mu.Lock()
	defer f.mu.Unlock()
	if compiled := f.compiled[key]; compiled != "" {
		spec.Annotations = map[string]string{filterAnnotation: compiled}
	}
	return key
}

// keep remembers the filter that the runtime has left in a file, if it has.
func (f *filters) keep(key [sha256.Size]byte, file string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.compiled[key] != "" || len(f.compiled) >= maxFilters {
		return
	}
	if raw, err := os.ReadFile(file); err == nil && len(raw) > 0 {
		if f.compiled == nil {
			f.compiled = map[[sha256.Size]byte]string{}
		}
		f.compiled[key] = base64.StdEncoding.EncodeToString(raw)
	}
}

// sealed has a command run crun from a mount that cannot be written, in the calling thread's own mount namespace. crun
// otherwise makes such a mount of itself and starts a second time from it, so that a container cannot change it.
func (r *Runtime) sealed(cmd *exec.Cmd) error {
	at := filepath.Join(assembly, "crun")
	if err := os.WriteFile(at, nil, 0o500); err != nil { // #nosec G306 -- a program
		return err
	}
	if err := bind(r.Program, at, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return fmt.Errorf("seal %s: %w", r.Name, err)
	}
	cmd.Path, cmd.Env = at, append(cmd.Env, "_LIBCONTAINER_CLONED_BINARY=1")
	return nil
}
