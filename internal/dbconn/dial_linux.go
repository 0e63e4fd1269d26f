package dbconn

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dialer returns what connects to the database. A connection whose bytes are not acknowledged, or whose other side is
// silent, is given up within unackedTimeout.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 2},
		Control:         boundUnacked,
	}
}

// boundUnacked sets TCP_USER_TIMEOUT, see tcp(7).
func boundUnacked(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
			int(unackedTimeout.Milliseconds()))
	})
	return errors.Join(err, failed)
}
