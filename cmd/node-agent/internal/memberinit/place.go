package memberinit

import (
	"net"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/draft"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// placePatience bounds how long the next piece of a placed file may take; the agent reads it from its own disk.
const placePatience = time.Minute

// files is where files go that the agent puts into the member.
func (s Settings) files() draft.Place { return draft.Place{Root: s.Root, Accounts: s.accounts()} }

// handlePlace takes a file of any size through the connection: never more of it than a buffer is in memory, nothing of
// the node's is handed into the member, and what the agent does not finish leaves nothing behind.
func (s *server) handlePlace(conn net.Conn, request wire.Request) {
	file, err := s.settings.files().New(*request.File)
	if err != nil {
		_ = wire.Write(conn, done(err))
		return
	}
	defer file.Discard()
	if err = file.Reserve(request.Size); err == nil {
		err = wire.Write(conn, done(nil))
	}
	if err == nil {
		err = file.Receive(patient{conn}, request.Size)
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
		err = file.Commit()
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestPatience))
	_ = wire.Write(conn, done(err))
}

// patient is a connection each read of which may take placePatience.
type patient struct{ conn net.Conn }

func (p patient) Read(into []byte) (int, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(placePatience)); err != nil {
		return 0, err
	}
	return p.conn.Read(into)
}
