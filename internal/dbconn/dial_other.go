//go:build !linux

package dbconn

import "net"

// dialer returns what connects to the database. TCP_USER_TIMEOUT is Linux's: elsewhere keep-alive alone finds a host
// that has vanished.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 2},
	}
}
