// Package reach is the commands by which people reach what runs in an instance.
package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// Commands returns the commands.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{endpoints(t), open(t), forward(t), kubeconfig(t), credential(t)}
}

var table = command.Table[gql.Endpoint]{
	Heading: []string{"NAME", "TITLE", "COMPONENT", "PROTOCOL", "SERVING", "PERMISSION KEY", "ADDRESS"},
	Row: func(e *gql.Endpoint) []string {
		return []string{e.Name, e.Title, e.ComponentKey, e.Protocol, strconv.Itoa(e.Serving),
			e.PermissionKey, e.Address}
	},
	ID: func(e *gql.Endpoint) string { return e.Name },
}

func endpoints(t *command.Tool) *cobra.Command {
	cmd := command.Verb(t, "endpoints INSTANCE", "List the endpoints of an instance that people can reach", table.View,
		func(ctx context.Context, args []string) ([]gql.Endpoint, error) {
			instance, err := lookup.Instance(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			answer, err := gql.ListEndpoints(ctx, t, instance)
			if err != nil {
				return nil, err
			}
			return answer.Instance.Endpoints, nil
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

// open prints an address that works once, and opens it in a browser where there is one.
func open(t *command.Tool) *cobra.Command {
	input := gql.OpenEndpointInput{}
	var browse bool
	cmd := command.Verb(t, "open INSTANCE ENDPOINT", "Open an endpoint in a browser, by an address that works once",
		opened,
		func(ctx context.Context, args []string) (_ *gql.OpenEndpointOpenEndpointOpenedEndpoint, err error) {
			if input.InstanceId, err = lookup.Instance(ctx, t, args[0]); err != nil {
				return nil, err
			}
			input.Endpoint = args[1]
			answer, err := gql.OpenEndpoint(ctx, t, input)
			if err != nil {
				return nil, err
			}
			if browse && t.Env.Browse(answer.OpenEndpoint.Url) != nil {
				t.Remark("no browser could be started: open the address yourself")
			}
			return &answer.OpenEndpoint, nil
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	cmd.Flags().BoolVar(&browse, "browse", false, "start the browser")
	command.ReasonFlag(cmd, &input.Reason)
	return cmd
}

func opened(o *gql.OpenEndpointOpenEndpointOpenedEndpoint) command.View {
	return command.Fields(o, o.Url, "Address", o.Url, "Works once, until", render.Time(&o.ExpiresAt))
}

// forward listens on a port of this machine and passes each connection on to an endpoint, until it is interrupted.
func forward(t *command.Tool) *cobra.Command {
	var member string
	var idle time.Duration
	cmd := t.Command("forward INSTANCE ENDPOINT [PORT]", "Reach an endpoint at a port of this machine",
		func(ctx context.Context, args []string) error {
			port := "0"
			if len(args) == 3 {
				port = args[2]
			}
			if number, err := strconv.ParseUint(port, 10, 16); err != nil {
				return command.Usagef("PORT: %q is not a port from 0 to 65535", port)
			} else if number == 0 {
				port = "0"
			}
			instance, err := lookup.Instance(ctx, t, args[0])
			if err != nil {
				return err
			}
			return listen(ctx, t, instance, args[1], member, port, idle)
		})
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	cmd.Flags().StringVar(&member, "member", "", "reach this member, by id, and not any that serves it")
	cmd.Flags().DurationVar(&idle, "idle", 0, "end after this long without a connection, such as 10m (default never)")
	cmd.Example = `  appctl forward training web 8888     # then http://127.0.0.1:8888`
	return cmd
}

// maxForwarded is how many connections are passed on at a time.
const maxForwarded = 256

func listen(ctx context.Context, t *command.Tool, instance, endpoint, member, port string, idle time.Duration) error {
	api, err := t.Connect()
	if err != nil {
		return err
	}
	dial := func() (io.ReadWriteCloser, error) { return api.Connect(ctx, instance, endpoint, member) }
	first, err := dial() // a refusal is told now, and not to whoever connects
	if err != nil {
		return err
	}
	_ = first.Close()
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	used := untilIdle(cancel, idle)
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	t.Remark("%s is available at %s until you interrupt this", endpoint, listener.Addr())
	slots := make(chan struct{}, maxForwarded)
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		slots <- struct{}{}
		used(1)
		go func() {
			defer func() { <-slots; used(-1) }()
			if err := pass(ctx, conn, dial); err != nil {
				t.Remark("a connection was refused: %s", err)
			}
		}()
	}
}

// untilIdle calls end after idle without a connection; 0 means never. The function that it returns counts the open
// connections: callers pass 1 and -1.
func untilIdle(end func(), idle time.Duration) func(int) {
	if idle <= 0 {
		return func(int) {}
	}
	var mu sync.Mutex
	open, timer := 0, time.AfterFunc(idle, end)
	return func(more int) {
		mu.Lock()
		defer mu.Unlock()
		if open += more; open > 0 {
			timer.Stop()
		} else {
			timer.Reset(idle)
		}
	}
}

// pass passes one connection on until it ends, or ctx does.
func pass(ctx context.Context, conn net.Conn, dial func() (io.ReadWriteCloser, error)) error {
	there, err := dial()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer context.AfterFunc(ctx, func() { _, _ = conn.Close(), there.Close() })()
	tunnel.Join(conn, there)
	return nil
}
