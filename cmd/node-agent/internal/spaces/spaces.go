// Package spaces makes namespaces ahead of the containers that join them.
package spaces

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
)

// Spaces are namespaces that a member's container joins: of users, with the mapping of its ids, and of the network,
// which belongs to the former. Only a new process can get a mapping, so Open starts one that waits for the end of its
// standard input. The namespaces end with it unless something has joined them.
type Spaces struct {
	holder *exec.Cmd
	hold   io.Closer
}

// Open starts the process. It runs nothing of the member's, and no process of the member can see it.
func Open(ids idrange.Range, network bool) (*Spaces, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	mapping := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(ids.First), Size: idrange.Size}}
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.Env = read, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping,
		GidMappingsEnableSetgroups: true, // the member's programs change to users of its own
	}
	if network {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("create a user namespace: %w", err)
	}
	return &Spaces{holder: cmd, hold: write}, nil
}

// PID is the number of the process that holds them.
func (s *Spaces) PID() int { return s.holder.Process.Pid }

// Path is that of a namespace, such as "user" or "net".
func (s *Spaces) Path(kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", s.PID(), kind) }

// Close ends the process.
func (s *Spaces) Close() {
	_ = s.hold.Close()
	_ = s.holder.Wait()
}
