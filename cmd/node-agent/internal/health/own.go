package health

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Bounds of an operator's own checks.
const (
	maxOwn      = 16               // files; those behind, by name, are not run
	ownTime     = 10 * time.Second // of each
	ownOutput   = 4 << 10          // bytes that are read of what one prints
	ownAtOnce   = 4
	ownKillTime = time.Second // for its pipes to close once it was killed
)

// ownName is what a check's file may be called; others, such as editors' copies, are left alone.
var ownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// own runs the executables of a folder, as monitoring plugins are: 0 is good, 1 a warning, 2 bad, and whatever else not
// known. The first line that one prints is its message.
func own(ctx context.Context, folder string) []gql.NodeConditionInput {
	if folder == "" {
		return nil
	}
	entries, err := os.ReadDir(folder) // by name
	if err != nil {
		return []gql.NodeConditionInput{found("checks", gql.NodeConditionStateUnknown,
			"the folder of checks cannot be read: %s",
			errors.Unwrap(err))}
	}
	var names []string
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(folder, entry.Name()))
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && ownName.MatchString(entry.Name()) &&
			len(names) < maxOwn {
			names = append(names, entry.Name())
		}
	}
	results := make([]gql.NodeConditionInput, len(names))
	group := errgroup.Group{}
	group.SetLimit(ownAtOnce)
	for i, name := range names {
		group.Go(func() error {
			results[i] = runOwn(ctx, folder, name)
			return nil
		})
	}
	_ = group.Wait()
	return results
}

// safe returns why a file is not run: it could be another's than the operator's.
func safe(path string) string {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return "it cannot be read"
	}
	switch {
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return "neither root nor the agent's user owns it"
	case stat.Mode&0o022 != 0:
		return "users other than its owner can write it"
	}
	return ""
}

func runOwn(ctx context.Context, folder, name string) gql.NodeConditionInput {
	path, condition := filepath.Join(folder, name), "check/"+name
	if why := safe(path); why != "" {
		return found(condition, gql.NodeConditionStateUnknown, "not run: %s", why)
	}
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	var out bounded
	command := exec.CommandContext(ctx, path) // #nosec G204 -- the operator's own program
	command.Dir, command.Stdout, command.Stderr, command.WaitDelay = folder, &out, &out, ownKillTime
	command.Env = []string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin"), "LANG=C"}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it and all that it starts are ended together
	command.Cancel = func() error { return unix.Kill(-command.Process.Pid, unix.SIGKILL) }
	err := command.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and something that it left holds its output open
		err = nil
	}
	if ctx.Err() != nil {
		return found(condition, gql.NodeConditionStateUnknown, "it did not end within %s and was stopped", ownTime)
	}
	if began := command.ProcessState; began != nil {
		_ = unix.Kill(-began.Pid(), unix.SIGKILL) // what it left running
	}
	said := firstLine(out.Bytes())
	var exit *exec.ExitError
	switch {
	case err == nil:
		return found(condition, gql.NodeConditionStateGood, "%s", cmp.Or(said, "it passed without a message"))
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return found(condition, gql.NodeConditionStateWarning, "%s", cmp.Or(said, "it warned without a message"))
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		return found(condition, gql.NodeConditionStateBad, "%s", cmp.Or(said, "it failed without a message"))
	case errors.As(err, &exit):
		return found(condition, gql.NodeConditionStateUnknown, "%s", cmp.Or(said, exit.String()))
	}
	return found(condition, gql.NodeConditionStateUnknown, "it could not be run: %s", errors.Unwrap(err))
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write takes everything, so that the program is not ended for what it prints.
func (b *bounded) Write(from []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if more := ownOutput - b.kept.Len(); more > 0 {
		b.kept.Write(from[:min(len(from), more)])
	}
	return len(from), nil
}

// Bytes are what was kept.
func (b *bounded) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.kept.Bytes())
}
