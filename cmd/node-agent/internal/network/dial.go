package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netns"
)

// Dial connects from inside the network namespace of a process: what it reaches is what the member reaches. Names are
// looked up on the node.
func Dial(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, one := range addresses {
		conn, err := dialInside(ctx, pid, network, net.JoinHostPort(one.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// lookup returns the addresses of a host; an address is its own.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
}

// dialInside makes the socket on a thread that is in the namespace. The thread ends with its goroutine: it is never
// unlocked, so that no other goroutine comes to run there.
func dialInside(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread()
		conn, err := dialHere(ctx, pid, network, address)
		done <- dialled{conn, err}
	}()
	result := <-done
	return result.conn, result.err
}

// dialHere spoils the calling thread for everybody else.
func dialHere(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	space, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, fmt.Errorf("network namespace of the member: %w", err)
	}
	err = netns.Set(space)
	_ = space.Close()
	if err != nil {
		return nil, fmt.Errorf("enter the member's network: %w", err)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
