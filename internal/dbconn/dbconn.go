// Package dbconn makes connections to the database on which nothing waits without an end. See docs/adr/0056.
package dbconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	// unackedTimeout is how long sent bytes may stay unacknowledged before the connection is given up; the kernel's own
	// patience is a quarter of an hour.
	unackedTimeout = 10 * time.Second
	keepAlive      = 5 * time.Second
)

// errSilent is the error of a connection whose other side stopped answering: one of the network, as net.ErrClosed is.
var errSilent = fmt.Errorf("the database did not answer in time: %w", net.ErrClosed)

// Dial returns what connects to the database by connections that wait for an answer at most for the time given.
func Dial(answer time.Duration) func(context.Context, string, string) (net.Conn, error) {
	by := dialer()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := by.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundConn{Conn: conn, answer: answer}, nil
	}
}

// boundConn is a connection on which nothing waits without an end. The server's time-outs end with the server, and a
// proxy between may acknowledge what it cannot forward. pgx reads only while it awaits something, so a bound on each
// read bounds every call, whatever its context says.
type boundConn struct {
	net.Conn
	answer time.Duration

	mu sync.Mutex
	// asked is the deadline that the user of the connection set, and reading and writing are when the calls under way
	// must have ended; zero for none.
	asked, reading, writing time.Time
}

// Read reads within the bound.
func (c *boundConn) Read(into []byte) (int, error) {
	if err := c.within(&c.reading, c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(into)
	return n, c.judged(err)
}

// Write writes within the bound.
func (c *boundConn) Write(from []byte) (int, error) {
	if err := c.within(&c.writing, c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(from)
	return n, c.judged(err)
}

// SetDeadline sets a deadline beside the bound; what is under way keeps the earlier one.
func (c *boundConn) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = at
	return errors.Join(c.Conn.SetReadDeadline(sooner(at, c.reading)), c.Conn.SetWriteDeadline(sooner(at, c.writing)))
}

// within sets the deadline of what begins now.
func (c *boundConn) within(until *time.Time, set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*until = time.Now().Add(c.answer)
	return set(sooner(c.asked, *until))
}

// judged distinguishes the bound from a deadline that was set: after the bound the connection is closed, as pgx keeps
// open what only timed out.
func (c *boundConn) judged(err error) error {
	var network net.Error
	if err == nil || !errors.As(err, &network) || !network.Timeout() {
		return err
	}
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if !asked.IsZero() && !time.Now().Before(asked) {
		return err
	}
	return errors.Join(errSilent, c.Conn.Close())
}

// sooner returns the earlier of two deadlines; a zero one does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
