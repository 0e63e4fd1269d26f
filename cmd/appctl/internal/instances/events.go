package instances

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxEvents bounds a timeline that is not followed.
const maxEvents = 10000

// A tail is the flags of following events.
type tail struct {
	follow       bool
	after, until string
	limit        int
	// wide shows whose events they are.
	wide bool
}

// events returns the command that shows or follows what happens.
func events(t *command.Tool) *cobra.Command {
	var f tail
	cmd := t.Command("tail [INSTANCE]", "Show an instance's timeline, or follow the whole project",
		func(ctx context.Context, args []string) error { return f.run(ctx, t, args) })
	cmd.Long = `Show an instance's timeline, oldest first. With -f it keeps running and shows each new event once,
across restarts of the server; without INSTANCE it follows everything in the project from now on. With -o json each
event is a line; its cursor, given as --after, resumes right after it.`
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "keep running and show new events")
	flags.StringVar(&f.after, "after", "", "begin after this event's cursor")
	flags.StringVar(&f.until, "until", "", "end after the first event of this type, such as apps.instance.running")
	flags.IntVar(&f.limit, "limit", 0, "end after this many events; 0 is 10000 without -f, and unlimited with it")
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	return command.Group("events", "Events of instances and of the project", cmd)
}

// run shows the project's feed, an instance's feed, or what an instance's timeline holds up to now.
func (f *tail) run(ctx context.Context, t *command.Tool, args []string) error {
	if f.limit < 0 {
		return command.Usagef("--limit %d: must not be negative", f.limit)
	}
	if len(args) == 0 && !f.follow {
		return command.Usagef("which instance? Without INSTANCE the project is followed: give -f")
	}
	c, err := t.Connect()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		project, err := t.ProjectID(ctx)
		if err != nil {
			return err
		}
		f.wide = true
		return f.print(t, c.ProjectActivity(ctx, project, f.after))
	}
	id, err := lookup.Instance(ctx, t, args[0])
	if err != nil {
		return err
	}
	if f.follow {
		return f.print(t, c.Timeline(ctx, id, f.after))
	}
	return f.print(t, f.history(ctx, t, id))
}

// history yields what has happened up to now.
func (f *tail) history(ctx context.Context, t *command.Tool, id string) func(func(*gql.Event, error) bool) {
	return func(yield func(*gql.Event, error) bool) {
		pages := client.All[gql.Event](cmp.Or(f.limit, maxEvents),
			func(first int, after string) (*gql.EventPage, error) {
				answer, err := gql.ListEvents(ctx, t, id, first, cmp.Or(after, f.after))
				return &answer.Instance.Events, err
			})
		for event, err := range pages {
			if !yield(&event, err) {
				return
			}
		}
	}
}

// print writes events as they come, until the feed or the caller's bounds end it.
func (f *tail) print(t *command.Tool, events func(func(*gql.Event, error) bool)) error {
	shown := 0
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := f.printEvent(t, event); err != nil {
			return err
		}
		shown++
		if shown == f.limit || event.Type == f.until {
			return nil
		}
	}
	return nil
}

// printEvent writes an event on one line of its own.
func (f *tail) printEvent(t *command.Tool, event *gql.Event) (err error) {
	switch {
	case t.AsJSON():
		err = render.JSONLine(t.Env.Stdout, event)
	case t.Quiet:
		_, err = fmt.Fprintln(t.Env.Stdout, event.Id)
	default:
		about := event.AppInstanceId
		switch {
		case event.AllocationId != nil:
			about = *event.AllocationId
		case event.VolumeId != nil:
			about = *event.VolumeId
		}
		whose := render.If(f.wide, about+"  ")
		_, err = fmt.Fprintf(t.Env.Stdout, "%4d  %s  %s%-32s  %s\n", event.Seq, render.Time(&event.OccurredAt),
			render.Clean(whose), render.Clean(event.Type), render.Clean(event.Message))
	}
	return err
}
