package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
)

// Identity writes what of /etc says where the member is, into one that has none: the member may change it. The address
// is its own, and empty where it has the node's.
func Identity(upper string, ids idrange.Range, address string) error {
	etc := filepath.Join(upper, "etc")
	if err := os.Mkdir(etc, 0o755); errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	hostname, _ := os.Hostname()
	err := errors.Join(os.Chmod(etc, 0o755), os.Lchown(etc, int(ids.First), int(ids.First)))
	for name, content := range map[string]string{
		"hosts": hostsOf("/etc/hosts", hostname, address), "hostname": hostname + "\n",
		"resolv.conf": resolvers("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"),
	} {
		path := filepath.Join(etc, name)
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644), unix.Chmod(path, 0o644),
			os.Lchown(path, int(ids.First), int(ids.First)))
	}
	return err
}

// hostsOf gives the loopback's names, and the host name: for the member's own address, or else as the node's file has
// it.
func hostsOf(file, hostname, address string) string {
	lines := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	if address != "" {
		return lines + address + " " + hostname + "\n"
	}
	raw, _ := os.ReadFile(file)
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[1] == hostname && !strings.HasPrefix(fields[0], "127.") && fields[0] != "::1" {
			lines += strings.Join(fields, " ") + "\n"
		}
	}
	return lines
}

// maxResolvers bounds what is taken of a file of name servers, in bytes.
const maxResolvers = 64 << 10

// resolvers gives the first file that names a server which is not the node's own: that one answers only on the node.
func resolvers(files ...string) string {
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || len(raw) > maxResolvers {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			fields := strings.Fields(line)
			if len(fields) > 1 && fields[0] == "nameserver" && !strings.HasPrefix(fields[1], "127.") &&
				fields[1] != "::1" {
				return string(raw)
			}
		}
	}
	return "# the node has no name server that members could use\n"
}
