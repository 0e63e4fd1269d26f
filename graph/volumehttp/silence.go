package volumehttp

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/volume"
)

const (
	// silence is how long a node may neither take nor send a byte, beside the time that it reads and writes by itself.
	silence = 2 * time.Minute
	// deletion is how long a node may take to delete a folder with all that is in it.
	deletion = 10 * time.Minute
	// slowest is the least bytes that a node reads or writes in a second, such as for the digest of the bytes before.
	slowest = 16 << 20
)

// patience is how long the node may be silent in this request.
func (a *asked) patience() time.Duration {
	var own int64 // the bytes that the node reads or writes while it says nothing
	switch a.Act {
	case volume.DeleteFile:
		return deletion
	case volume.WriteFile:
		own = a.part.Total
	case volume.ReadFile:
		_, _ = fmt.Sscanf(a.header.Get("Range"), "bytes=%d-", &own) // none begins at the first byte
	}
	return silence + time.Duration(own/slowest)*time.Second
}

// silent returns the fault that ends a request whose node is silent.
func silent(after time.Duration) error {
	return fault.New(fault.Unavailable, "the node has neither received nor sent a byte for %s, and the request was "+
		"given up: try it again, and a file continues where it was", after).Retry(true)
}

// listened notes whatever passes on a connection.
type listened struct {
	net.Conn
	heard func()
}

// Read implements net.Conn.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// Write implements net.Conn.
func (l *listened) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// listen gives the request up when nothing passes on its connection for too long.
func (p *passage) listen(giveUp context.CancelCauseFunc) {
	patience := p.asked.patience()
	timer := time.AfterFunc(patience, func() { giveUp(silent(patience)) })
	p.conn, p.quit = &listened{Conn: p.conn, heard: func() { timer.Reset(patience) }}, timer.Stop
}
