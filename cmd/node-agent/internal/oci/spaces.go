package oci

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
)

// spaces are namespaces that a member's container joins: of users, with the mapping of its ids, and of the network,
// which belongs to the former. Only a process can have a mapping made, so that one is started that waits for its end on
// its standard input. The namespaces end with it unless something has joined them.
type spaces struct {
	holder *exec.Cmd
	hold   io.Closer
}

// openSpaces starts the process. It runs nothing of the member's, and no process of the member can see it.
func openSpaces(ids idrange.Range, network bool) (*spaces, error) {
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
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	return &spaces{holder: cmd, hold: write}, nil
}

func (s *spaces) pid() int { return s.holder.Process.Pid }

// path is that of a namespace, such as "user" or "net".
func (s *spaces) path(kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", s.pid(), kind) }

func (s *spaces) close() {
	_ = s.hold.Close()
	_ = s.holder.Wait()
}
