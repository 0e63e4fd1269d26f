package members

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxFollowed bounds the members that are followed at once, each by a connection.
const maxFollowed = 16

// reading is the flags of reading logs.
type reading struct {
	follow, all    bool
	process, since string
	tail           int
	printing       sync.Mutex
	wide           bool // lines say which member printed them
}

// shownLine is a line with its member, as JSON.
type shownLine struct {
	Member string `json:"member"`
	*gql.LogLine
}

// Logs returns the command that shows what members print.
func Logs(t *command.Tool) *cobra.Command {
	var r reading
	cmd := t.Command("logs INSTANCE[/COMPONENT/NUMBER]", "Show what the processes of members print",
		func(ctx context.Context, args []string) error { return r.run(ctx, t, args[0]) })
	cmd.Args = cobra.ExactArgs(1)
	cmd.Long = `Show the last lines that the processes of a member, or of all members of an instance, have printed. With
-f it keeps running and shows each new line once, across restarts of processes, nodes' agents and the server. Nodes
keep only the last lines: the place of lines that are no longer kept is marked. Secrets that the platform issued are
masked. Of a removed member the last lines are shown.

` + help
	flags := cmd.Flags()
	flags.BoolVarP(&r.follow, "follow", "f", false, "keep running and show new lines")
	flags.StringVar(&r.process, "process", "", "only this process")
	flags.IntVar(&r.tail, "tail", 200, "begin this many lines before the end, at most 1000")
	flags.BoolVar(&r.all, "all", false, "begin with the first line that is kept")
	flags.StringVar(&r.since, "since", "", "only lines since then: 10m, 2h, or a time such as 2026-12-31T00:00:00Z")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return cmd
}

func (r *reading) run(ctx context.Context, t *command.Tool, given string) error {
	from, err := r.from()
	if err != nil {
		return err
	}
	c, err := t.Connect()
	if err != nil {
		return err
	}
	members, err := r.members(ctx, t, given)
	if err != nil {
		return err
	}
	if !r.follow {
		for _, member := range members {
			if err := r.show(ctx, t, member, from); err != nil {
				return err
			}
		}
		return nil
	}
	return r.followAll(ctx, t, c, members, from)
}

// from reads where the lines begin.
func (r *reading) from() (client.LogsFrom, error) {
	from := client.LogsFrom{Process: r.process, Tail: &r.tail}
	if r.tail < 0 || r.tail > 1000 {
		return from, command.Usagef("--tail %d: must be 0 to 1000; --all begins with the first line that is kept",
			r.tail)
	}
	if r.since != "" {
		before, notSpan := time.ParseDuration(r.since)
		at, err := new(time.Now().Add(-before)), error(nil)
		if notSpan != nil {
			at, err = command.Moment("since", r.since)
		}
		if err != nil {
			return from, err
		}
		from.Since = at
	}
	if r.all || from.Since != nil {
		from.Tail = new(0)
	}
	return from, nil
}

// members finds the member that is meant, or those of an instance that were not removed.
func (r *reading) members(ctx context.Context, t *command.Tool, given string) ([]gql.Member, error) {
	if strings.HasPrefix(given, "mem_") || strings.Contains(given, "/") {
		id, err := find(ctx, t, given)
		if err != nil {
			return nil, err
		}
		answer, err := gql.GetMember(ctx, t, id)
		return []gql.Member{answer.Member}, err
	}
	id, err := lookup.Instance(ctx, t, given)
	if err != nil {
		return nil, err
	}
	found, err := of(ctx, t, id, maxMembers)
	found = slices.DeleteFunc(found, func(member gql.Member) bool { return member.Status == gql.MemberStatusRemoved })
	r.wide = len(found) > 1
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, command.NotFoundf("the instance %s has no members; name one that was removed by its place, such "+
			"as %s/worker/0",
			given, given)
	case r.follow && len(found) > maxFollowed:
		return nil, command.Usagef("%s has %d members, and %d can be followed at once: name one", given, len(found),
			maxFollowed)
	}
	return found, nil
}

// show prints what is there of one member.
func (r *reading) show(ctx context.Context, t *command.Tool, member gql.Member, from client.LogsFrom) error {
	for {
		tail := from.Tail
		if from.After != "" {
			tail = nil
		}
		answer, err := gql.GetMemberLogs(ctx, t, member.Id, from.Process, from.After, tail, from.Since)
		if err != nil {
			return err
		}
		page := answer.Member.Logs
		for _, line := range page.Lines {
			if err := r.print(t, &member, &line); err != nil {
				return err
			}
		}
		from.After = page.Cursor
		if !page.More {
			return nil
		}
	}
}

// followAll prints what members print, until all were removed, the reader stops, or one cannot be followed any more.
func (r *reading) followAll(ctx context.Context, t *command.Tool, c *client.Client, members []gql.Member,
	from client.LogsFrom) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wait sync.WaitGroup
	for _, member := range members {
		wait.Go(func() {
			for line, err := range c.MemberLogs(ctx, member.Id, from) {
				if err == nil {
					err = r.print(t, &member, line)
				}
				if err != nil {
					stop(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// print writes a line.
func (r *reading) print(t *command.Tool, member *gql.Member, line *gql.LogLine) (err error) {
	r.printing.Lock()
	defer r.printing.Unlock()
	switch {
	case t.AsJSON():
		return render.JSONLine(t.Env.Stdout, shownLine{member.Id, line})
	case t.Quiet:
		if line.Gap == nil {
			_, err = fmt.Fprintln(t.Env.Stdout, render.Clean(line.Text))
		}
		return err
	}
	whose := render.If(r.wide, name(member)+"  ") + line.Process
	text, stream := line.Text, "|"
	if line.Stream != nil && *line.Stream == gql.OutputStreamStderr {
		stream = "!"
	}
	if line.Gap != nil {
		text, stream = gapText(line.Gap), "~"
	}
	_, err = fmt.Fprintf(t.Env.Stdout, "%-20s  %s %s %s\n", render.Time(line.At), render.Clean(whose), stream,
		render.Clean(text))
	return err
}

// gapText says what is not there.
func gapText(gap *gql.LogLineGapLogGap) string {
	if gap.Restarted || gap.Lines == nil {
		return "(the node restarted; lines may be lost)"
	}
	return fmt.Sprintf("(%s no longer kept)", render.Plural(*gap.Lines, "line"))
}
