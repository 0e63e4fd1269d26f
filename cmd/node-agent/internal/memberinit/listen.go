package memberinit

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Listen opens the member's socket, which the member itself has no path to: it could put a link in its place.
func Listen(dir string) (*os.File, error) {
	handle, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/%s", handle.Fd(), SocketName) // a socket's own path may not be long
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	return listener.File()
}
