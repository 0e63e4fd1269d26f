// Package loopback chooses addresses of this machine for servers that are killed and come back to
// the address they had, as tests of adapters and local installations have them.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// The ports to choose from lie below those that outgoing connections get by themselves (32768 and up
// on Linux), which could otherwise take a port while its server is away.
const (
	lowestPort = 20_000
	ports      = 12_000
	attempts   = 64
)

// A listener that was closed may be held a while by a process that was forked before and has not
// executed its program yet.
const (
	patience = 5 * time.Second
	tick     = 5 * time.Millisecond
)

// Listen listens again on an address whose listener this process has just closed. An address that is
// still in use after 5 seconds belongs to another process; the error reports that it is in use.
func Listen(address string) (net.Listener, error) {
	for end := time.Now().Add(patience); ; time.Sleep(tick) {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return listener, err
		}
	}
}

// Address returns a free host:port of the loopback. Where the system has all of 127.0.0.0/8, as Linux
// has, the host is one out of sixteen million: no other server and no outgoing connection uses it, so
// it is still free when a killed server starts again. Elsewhere the host is 127.0.0.1.
func Address() (string, error) {
	host := net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254))).String()
	address, err := AddressOn(host)
	if err != nil {
		return AddressOn("127.0.0.1")
	}
	return address, nil
}

// AddressOn returns a free host:port of this host.
func AddressOn(host string) (string, error) {
	var failed error
	for range attempts {
		address := net.JoinHostPort(host, strconv.Itoa(lowestPort+rand.IntN(ports)))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		failed = err
	}
	return "", fmt.Errorf("choose a port of %s: %w", host, failed)
}
