package drills_test

import (
	"io"
	"net"
	"strings"
	"sync"
)

// wire is the network between a node and the platform, which a drill may cut.
type wire struct {
	mu    sync.Mutex
	off   bool
	open  map[net.Conn]bool
	begun string
}

var between = &wire{open: map[net.Conn]bool{}}

// through returns an address that leads to the platform over the wire.
func (b *wire) through(platform string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		b.begun = "http://" + listener.Addr().String()
		go b.accept(listener, strings.TrimPrefix(platform, "http://"))
	}
	return b.begun
}

func (b *wire) accept(listener net.Listener, to string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil || !b.keep(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			}()
		}
	}
}

// keep remembers connections, and reports whether the wire carries any.
func (b *wire) keep(connections ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range connections {
		b.open[one] = true
	}
	return !b.off
}

// cut cuts the wire, or mends it.
func (b *wire) cut(off bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = off
	for one := range b.open {
		_ = one.Close()
		delete(b.open, one)
	}
}
