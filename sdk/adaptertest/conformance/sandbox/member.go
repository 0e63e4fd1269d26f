package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// member is one sandbox.
type member struct {
	id, instance, root string
	space              *space // nil for a directory and plain processes
	before             table  // the processes that are not the member's, because they are older

	// order serialises what changes the member.
	order     sync.Mutex
	mu        sync.Mutex
	ran       bool // a command has been started, so there may be processes
	processes map[string]*process
	boots     []adapter.CloudInit
}

// do carries out one task that needs the sandbox.
func (m *member) do(ctx context.Context, task Task, n *Nodes) (Outcome, error) {
	switch task.Kind {
	case adapter.TaskRun:
		return decoded(task, func(s nodetask.Run) (Outcome, error) { return m.run(ctx, s, n) })
	case adapter.TaskProbe:
		return decoded(task, func(s nodetask.Probe) (Outcome, error) { return m.probe(ctx, s) })
	case adapter.TaskInspectProcess:
		return decoded(task, func(s adapter.InspectProcess) (Outcome, error) { return m.inspect(s.Name), nil })
	}
	m.order.Lock()
	defer m.order.Unlock()
	switch task.Kind {
	case adapter.TaskWriteFile:
		return decoded(task, func(s adapter.WriteFile) (Outcome, error) { return m.write(s, n) })
	case adapter.TaskStartProcess:
		return decoded(task, func(s nodetask.StartProcess) (Outcome, error) { return m.start(s, n) })
	case adapter.TaskFetchArtifact:
		return decoded(task, func(s adapter.FetchArtifact) (Outcome, error) { return m.fetch(s, n) })
	case adapter.TaskCloudInit:
		return decoded(task, func(s adapter.CloudInit) (Outcome, error) { return m.boot(ctx, s, n) })
	case adapter.TaskStopProcess:
		return decoded(task, func(s adapter.StopProcess) (Outcome, error) { return m.stop(ctx, s.Name) })
	}
	return Outcome{}, failf("SPEC_INVALID", "node task kind %q is not known", task.Kind)
}

// decoded reads a spec strictly: a field that the node does not know is a mistake of the adapter.
func decoded[T any](task Task, do func(T) (Outcome, error)) (Outcome, error) {
	var spec T
	decoder := json.NewDecoder(bytes.NewReader(task.Spec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return Outcome{}, failf("SPEC_INVALID", "spec of %s: %w", task.Kind, err)
	}
	return do(spec)
}

// write writes a file in the member's directory. No path leads out of the directory.
func (m *member) write(spec adapter.WriteFile, n *Nodes) (Outcome, error) {
	content, err := contentOf(spec, m.instance, n)
	if err != nil {
		return Outcome{}, err
	}
	mode, err := modeOf(spec.Mode)
	if err != nil {
		return Outcome{}, err
	}
	if !path.IsAbs(spec.Path) || path.Clean(spec.Path) == "/" {
		return Outcome{}, failf("PATH_INVALID", "path %q is not absolute", spec.Path)
	}
	root, err := os.OpenRoot(m.files())
	if err != nil {
		return Outcome{}, failf("WRITE_FAILED", "%w", err)
	}
	defer root.Close()
	name := strings.TrimPrefix(path.Clean(spec.Path), "/")
	if spec.MakeDirs {
		err = root.MkdirAll(path.Dir(name), 0o755)
	}
	if err == nil {
		err = errors.Join(root.WriteFile(name, content, mode), root.Chmod(name, mode))
	}
	if err == nil && spec.Owner != "" {
		err = m.own(root, name, spec.Owner)
	}
	if err != nil {
		return Outcome{}, failf("WRITE_FAILED", "%w", err)
	}
	return Outcome{Result: map[string]any{"bytes": len(content)}}, nil
}

// contentOf returns the bytes that a task writes, opened where they are sealed.
func contentOf(spec adapter.WriteFile, instance string, n *Nodes) ([]byte, error) {
	switch {
	case spec.ContentBase64 != "":
		raw, err := base64.StdEncoding.DecodeString(spec.ContentBase64)
		if err != nil {
			return nil, failf("SPEC_INVALID", "contentBase64 is not base64")
		}
		return raw, nil
	case spec.Sealed != "":
		return n.open(spec.Sealed, instance)
	}
	return []byte(spec.Content), nil
}

func modeOf(text string) (fs.FileMode, error) {
	if text == "" {
		return 0o644, nil
	}
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil {
		return 0, failf("SPEC_INVALID", "mode %q is not octal", text)
	}
	return fs.FileMode(mode) & fs.ModePerm, nil
}

// own gives a file to an account of this machine. Without root only one's own account works.
func (m *member) own(root *os.Root, name, owner string) error {
	account, _, _ := strings.Cut(owner, ":")
	uid, gid, err := accountOf(account)
	if err != nil {
		return err
	}
	return root.Lchown(name, uid, gid)
}

func accountOf(name string) (uid, gid int, err error) {
	account, err := user.Lookup(name)
	if err != nil {
		return 0, 0, failf("USER_UNKNOWN", "there is no user %q", name)
	}
	uid, badUser := strconv.Atoi(account.Uid)
	gid, badGroup := strconv.Atoi(account.Gid)
	if err := errors.Join(badUser, badGroup); err != nil {
		return 0, 0, failf("USER_UNKNOWN", "user %q: %w", name, err)
	}
	return uid, gid, nil
}

// environment returns the variables of every command and those of its spec.
func (m *member) environment(vars []nodetask.EnvVar, n *Nodes) ([]string, error) {
	home, temporary := m.root, filepath.Join(m.root, "tmp")
	if m.space != nil {
		home, temporary = "/root", "/tmp"
	}
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + home,
		"TMPDIR=" + temporary, "GPUAAS_MEMBER_ID=" + m.id, "GPUAAS_INSTANCE_ID=" + m.instance, m.mark(),
	}
	for _, one := range vars {
		value := ""
		if one.Value != nil {
			value = *one.Value
		}
		if one.Sealed != nil && *one.Sealed != "" {
			opened, err := n.open(*one.Sealed, m.instance)
			if err != nil {
				return nil, err
			}
			value = string(opened)
		}
		env = append(env, one.Name+"="+value)
	}
	return env, nil
}

// mark returns the variable that distinguishes the processes of this member from all others of the
// machine.
func (m *member) mark() string {
	if m.space != nil {
		return "GPUAAS_MEMBER_ROOT="
	}
	return "GPUAAS_MEMBER_ROOT=" + m.root
}

// make creates the member's directory, and its namespaces where it has some.
func (m *member) make(namespaces bool) (err error) {
	if namespaces {
		m.space, err = enclose(m.root)
		return err
	}
	return os.MkdirAll(filepath.Join(m.root, "tmp"), 0o755)
}

// files returns the member's root directory as this machine reaches it.
func (m *member) files() string {
	if m.space != nil {
		return m.space.path("/")
	}
	return m.root
}

// written returns the directory of what the member has written.
func (m *member) written() string {
	if m.space != nil {
		return m.space.path(upper)
	}
	return m.root
}

// residue counts the files of the directory and the processes that carry the member's mark.
func (m *member) residue() (adapter.Residue, error) {
	var left adapter.Residue
	written := m.written()
	err := filepath.WalkDir(written, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		left.Files++
		if info, err := entry.Info(); err == nil {
			left.Bytes += info.Size()
		}
		if len(left.Names) < 50 {
			left.Names = append(left.Names, strings.TrimPrefix(name, written))
		}
		return nil
	})
	if err != nil {
		return left, fmt.Errorf("residue of %s: %w", m.id, err)
	}
	for _, pid := range m.pids() {
		left.Processes = append(left.Processes, adapter.ResidueProcess{PID: pid, Command: commandOf(pid)})
	}
	_, err = os.Stat(m.root)
	left.Sandbox = err == nil
	return left, nil
}
