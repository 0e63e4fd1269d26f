package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Exec returns the command that runs a command in a member.
func Exec(t *command.Tool) *cobra.Command {
	var interactive, tty bool
	var user, reason string
	cmd := t.Command("exec MEMBER COMMAND", "Run a command in a member, and work with it",
		func(ctx context.Context, args []string) error {
			member, err := find(ctx, t, args[0])
			if err != nil {
				return err
			}
			wanted := tunnel.Exec{Command: args[1:], User: user, TTY: tty}
			return work(ctx, t, member, reason, wanted, interactive)
		})
	cmd.Use, cmd.Args = "exec MEMBER -- COMMAND…", cobra.MinimumNArgs(2)
	cmd.Example = `  appctl exec -it training/worker/0 --reason "check the disk" -- bash
  appctl exec mem_1 --reason "count" -- nproc`
	flags := cmd.Flags()
	flags.BoolVarP(&interactive, "interactive", "i", false, "pass standard input on")
	flags.BoolVarP(&tty, "tty", "t", false, "give the command a terminal")
	flags.StringVar(&user, "user", "", "user or user:group that runs it in the member (default root)")
	command.NeededReasonFlag(cmd, &reason)
	return cmd
}

// work runs the command and passes everything on until it ends. A command that failed is an error with its exit code.
func work(ctx context.Context, t *command.Tool, member, reason string, wanted tunnel.Exec, interactive bool) error {
	screen, own := t.Env.Stdin.(*os.File)
	own = own && wanted.TTY && interactive && term.IsTerminal(int(screen.Fd()))
	wanted.Rows, wanted.Cols = 24, 80
	if own {
		wanted.Cols, wanted.Rows = sizeOf(screen)
	}
	api, err := t.Connect()
	if err != nil {
		return err
	}
	conn, err := api.Exec(ctx, member, reason, wanted)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	to := &frames{to: conn}
	if own {
		before, err := term.MakeRaw(int(screen.Fd()))
		if err != nil {
			return fmt.Errorf("take the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(screen.Fd()), before) }()
		defer to.follow(screen)()
	}
	if interactive {
		go to.pass(t.Env.Stdin)
	} else if err := to.write(tunnel.InputEnd, nil); err != nil {
		return err
	}
	return watch(t, conn)
}

// watch writes what the command writes, and returns how it ended.
func watch(t *command.Tool, conn io.Reader) error {
	for {
		kind, carries, err := tunnel.ReadFrame(conn)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("the connection ended before the command did")
		case err != nil:
			return fmt.Errorf("read what the command writes: %w", err)
		case kind == tunnel.Output:
			_, err = t.Env.Stdout.Write(carries)
		case kind == tunnel.ErrorOutput:
			_, err = t.Env.Stderr.Write(carries)
		case kind == tunnel.Exit:
			if code := tunnel.ReadExit(carries); code != 0 {
				return command.Failed(fmt.Errorf("the command ended with exit code %d", code))
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sizeOf is the size of a terminal.
func sizeOf(screen *os.File) (cols, rows uint16) {
	width, height, err := term.GetSize(int(screen.Fd()))
	if err != nil || width < 1 || height < 1 || width > 1_000 || height > 1_000 {
		return 80, 24
	}
	return uint16(width), uint16(height) // #nosec G115 -- at most 1,000
}

// frames writes frames to a command, from several sides.
type frames struct {
	mu sync.Mutex
	to io.Writer
}

func (f *frames) write(kind tunnel.Frame, carries []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tunnel.WriteFrame(f.to, kind, carries)
}

// pass passes an input on to its end.
func (f *frames) pass(from io.Reader) {
	buffer := make([]byte, tunnel.MaxFrame)
	for {
		n, err := from.Read(buffer)
		if n > 0 && f.write(tunnel.Input, buffer[:n]) != nil {
			return
		}
		if err != nil {
			_ = f.write(tunnel.InputEnd, nil)
			return
		}
	}
}

// follow sends the command each new size of the terminal, until stop is called.
func (f *frames) follow(screen *os.File) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for range changed {
			cols, rows := sizeOf(screen)
			_ = f.write(tunnel.Size, tunnel.SizeOf(rows, cols))
		}
	}()
	return func() {
		signal.Stop(changed)
		close(changed)
	}
}
