package memberinit

import (
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// placeBuffer is how much of a placed file is in memory at once, in bytes.
	placeBuffer = 256 << 10
	// placePatience bounds how long the next piece of a placed file may take; the agent reads it from its own disk.
	placePatience = time.Minute
)

// handlePlace takes a file of any size through the connection: never more of it than a buffer is in memory, nothing of
// the node's is handed into the member, and what the agent does not finish leaves nothing behind.
func (s *server) handlePlace(conn net.Conn, request wire.Request) {
	draft, err := s.settings.draft(*request.File)
	if err != nil {
		_ = wire.Write(conn, done(err))
		return
	}
	defer draft.discard()
	if err = draft.reserve(request.Size); err == nil {
		err = wire.Write(conn, done(nil))
	}
	if err == nil {
		err = draft.receive(conn, request.Size)
	}
	var follows wire.Request
	if err == nil {
		err = wire.Read(patient{conn}, &follows)
	}
	switch {
	case err != nil:
	case follows.Op != wire.OpCommit:
		err = wire.Errorf(wire.CodeProtocolUnknown, "operation %q does not end a file", follows.Op)
	default:
		err = draft.commit()
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestPatience))
	_ = wire.Write(conn, done(err))
}

// reserve finds out early that a file has no room, where the filesystem can tell.
func (d *draft) reserve(size int64) error {
	if size < 0 {
		return wire.Errorf(wire.CodeSpecInvalid, "size: %d is negative", size)
	}
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(d.handle.Fd()), 0, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return wire.Errorf(wire.CodeDiskFull, "path: there is no room for the %d bytes of %q in the member", size,
			d.file.Path)
	}
	return nil
}

func (d *draft) receive(conn net.Conn, size int64) error {
	// Neither end is given as what it is, since the copy would go around the buffer, in pieces of another size.
	got, err := io.CopyBuffer(struct{ io.Writer }{d.handle}, io.LimitReader(patient{conn}, size),
		make([]byte, placeBuffer))
	if err == nil && got != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return writeFailed(wire.CodeDiskFull, d.file.Path, err)
	}
	return nil
}

// patient is a connection each read of which may take placePatience.
type patient struct{ conn net.Conn }

func (p patient) Read(into []byte) (int, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(placePatience)); err != nil {
		return 0, err
	}
	return p.conn.Read(into)
}
