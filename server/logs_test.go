package server

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
)

// printer is a process of a member that prints its line's number.
type printer struct {
	mu    sync.Mutex
	lines int64
	more  chan struct{} // closed and renewed at every line
}

func (p *printer) print(count int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines += count
	close(p.more)
	p.more = make(chan struct{})
}

// Processes and Read are an agent's.
func (p *printer) Processes(string) ([]string, error) { return []string{"app"}, nil }

func (p *printer) Read(ctx context.Context, query nodelogs.Query, each func(nodelogs.Line) error) error {
	for at := query.After["app"]; ; {
		p.mu.Lock()
		lines, more := p.lines, p.more
		p.mu.Unlock()
		for at < lines {
			at++
			if err := each(nodelogs.Line{Process: "app", Number: at, Time: time.Now(), Stream: "stdout",
				Text: fmt.Sprint(at)}); err != nil {
				return err
			}
		}
		if !query.Follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A follower at one process of the platform reads what a member prints by way of another one's tunnel: each line once,
// when the agent goes over to another process too, and no more within seconds of its right's end.
func TestLogsAreFollowedThroughTheTunnel(t *testing.T) {
	t.Parallel()
	r := newReachable(t)
	app := &printer{more: make(chan struct{})}
	r.logs = app
	agent, stop := context.WithCancel(t.Context())
	defer stop()
	r.agent(agent, r.near)
	admin := r.User(r.tenant, platformtest.In(authz.ProjectViewer, r.project))
	role := r.Bind(admin, platformtest.In(authz.ProjectAdmin, r.project))
	c, err := client.New(r.far.url, client.Options{Token: r.Session(admin)})
	require.NoError(t, err)
	members, err := gql.ListMembers(t.Context(), c, string(r.instance.ID), 1, "")
	require.NoError(t, err)
	member := members.Instance.Members.Edges[0].Node.Id

	app.print(3)
	page, err := gql.GetMemberLogs(t.Context(), c, member, "", "", nil, nil)
	require.NoError(t, err)
	require.Len(t, page.Member.Logs.Lines, 3)
	require.Equal(t, []string{"app"}, page.Member.Logs.Processes)

	at := 0
	var ended error
	for line, err := range c.MemberLogs(t.Context(), member, client.LogsFrom{}) {
		if err != nil {
			ended = err
			break
		}
		at++
		require.Equal(t, fmt.Sprint(at), line.Text)
		switch at {
		case 3:
			stop() // the agent loses its process, and comes back at another
			require.Eventually(t, func() bool { return r.Count("node_tunnel", "true") == 0 }, time.Minute,
				10*time.Millisecond)
			app.print(2)
			r.agent(t.Context(), r.far)
		case 5:
			app.print(1)
		case 6:
			r.SQL(`DELETE FROM role_binding WHERE id = $1`, role.ID)
		}
	}
	require.Equal(t, 6, at)
	require.Equal(t, client.CodePermissionRevoked, client.CodeOf(ended), "%v", ended)
	require.Equal(t, 2, r.Count("audit_entry",
		`action = 'readMemberLogs' AND allowed AND permission_key = 'apps.member.logs'`))
}
