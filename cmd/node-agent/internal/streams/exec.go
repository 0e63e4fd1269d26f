package streams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// exec runs a command in a member and passes its frames on, until it ends or the stream does.
func (s *Server) exec(ctx context.Context, open tunnel.Open, stream *tunnel.Stream) error {
	var wanted tunnel.Exec
	if err := json.Unmarshal(open.Spec, &wanted); err != nil || len(wanted.Command) == 0 {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: "a command must name a program"}
	}
	member, err := s.Members.Lookup(ctx, open.MemberID)
	if err == nil && member == nil {
		err = errors.New("the member has no sandbox on this node")
	}
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.NoMember, Message: err.Error()}
	}
	command := wire.Exec{Command: wanted.Command, User: wanted.User, TTY: wanted.TTY, Rows: wanted.Rows,
		Cols: wanted.Cols}
	if wanted.TTY {
		command.Env = []string{"TERM=xterm-256color"}
	}
	running, err := member.Exec(ctx, command)
	if err != nil {
		return &tunnel.Refusal{Code: tunnel.Invalid, Message: err.Error()}
	}
	defer func() { _ = running.Close() }()
	if err := stream.Granted(); err != nil {
		return err
	}
	return pass(stream, running)
}

// pass passes frames both ways until the command ends or the stream does.
func pass(stream *tunnel.Stream, running net.Conn) error {
	go func() {
		defer func() { _ = running.Close() }() // the caller has gone, or sends what is no input
		for feed(stream, running) == nil {
		}
	}()
	return follow(running, stream)
}

// feed gives the command one frame of input. A command that has ended takes none, and feed returns no error for that:
// closing its connection would lose its exit code, which may be unread there.
func feed(stream io.Reader, running io.Writer) error {
	kind, carries, err := tunnel.ReadFrame(stream)
	if err != nil {
		return err
	}
	switch kind {
	case tunnel.Input:
		_ = wire.Write(running, wire.ExecInput{Data: carries})
	case tunnel.InputEnd:
		_ = wire.Write(running, wire.ExecInput{End: true})
	case tunnel.Size:
		rows, cols := tunnel.ReadSize(carries)
		_ = wire.Write(running, wire.ExecInput{Rows: rows, Cols: cols})
	default:
		return errors.New("the frame is not one of input")
	}
	return nil
}

// follow passes on what comes of the command.
func follow(running net.Conn, stream *tunnel.Stream) error {
	for {
		var next wire.Response
		switch err := wire.Read(running, &next); {
		case err != nil:
			return err
		case next.Result != nil:
			return tunnel.WriteFrame(stream, tunnel.Exit, tunnel.ExitOf(next.Result.ExitCode))
		case next.Output == nil:
			continue
		}
		kind := tunnel.Output
		if next.Output.Stream == "stderr" {
			kind = tunnel.ErrorOutput
		}
		if err := tunnel.WriteFrame(stream, kind, next.Output.Data); err != nil {
			return err
		}
	}
}
