package controller

import (
	"net"
	"sync"
)

// limited accepts at most as many connections at a time as its slots hold.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(listener net.Listener, n int) net.Listener {
	return &limited{Listener: listener, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept waits for a slot and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotConn struct {
	net.Conn
	free func()
}

// Close frees the slot once.
func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
