package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type tailFlags struct {
	follow       bool
	after, until string
	limit        int
}

func (t *tool) eventsCommand() *cobra.Command {
	var flags tailFlags
	tail := t.command("tail [INSTANCE]", "Show an instance's timeline, or follow the whole project", cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error { return t.tail(ctx, args, flags) })
	tail.Long = `Show an instance's timeline, oldest first. With -f it stays and shows what happens, over restarts of the server,
each event once; without INSTANCE it follows everything in the project from now on. With -o json each event is a
line; its cursor, given as --after, resumes right behind it.`
	set := tail.Flags()
	set.BoolVarP(&flags.follow, "follow", "f", false, "stay and show what happens")
	set.StringVar(&flags.after, "after", "", "begin after this event's cursor")
	set.StringVar(&flags.until, "until", "", "end after the first event of this type, such as apps.instance.running")
	set.IntVar(&flags.limit, "limit", 0, "end after so many events; 0 for 10000 without -f and no end with it")
	tail.ValidArgsFunction = t.completeInstances
	return group("events", "What happens", tail)
}

const maxEvents = 10000

func (t *tool) tail(ctx context.Context, args []string, flags tailFlags) error {
	if flags.limit < 0 {
		return usagef("--limit %d: must not be negative", flags.limit)
	}
	if len(args) == 0 && !flags.follow {
		return usagef("which instance? Without INSTANCE the project is followed: give -f")
	}
	c, err := t.connect()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		project, err := t.projectID(ctx, c)
		if err != nil {
			return err
		}
		return t.print(c.ProjectActivity(ctx, project, flags.after), flags, true)
	}
	id, err := t.instanceID(ctx, c, args[0])
	if err != nil {
		return err
	}
	if flags.follow {
		return t.print(c.Timeline(ctx, id, flags.after), flags, false)
	}
	return t.print(history(ctx, c, id, flags), flags, false)
}

// history is what has happened up to now.
func history(ctx context.Context, c *client.Client, id string, flags tailFlags) func(func(*gql.Event, error) bool) {
	limit := flags.limit
	if limit == 0 {
		limit = maxEvents
	}
	return func(yield func(*gql.Event, error) bool) {
		pages := client.All[gql.Event](limit, func(first int, after string) (*gql.EventPage, error) {
			answer, err := gql.ListEvents(ctx, c, id, first, firstOf(after, flags.after))
			if err != nil {
				return nil, err
			}
			return &answer.Instance.Events, nil
		})
		for event, err := range pages {
			if !yield(&event, err) {
				return
			}
		}
	}
}

// print writes events as they come, until the feed or the caller's bounds end it.
func (t *tool) print(events func(func(*gql.Event, error) bool), flags tailFlags, wide bool) error {
	shown := 0
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := t.printEvent(event, wide); err != nil {
			return err
		}
		shown++
		if shown == flags.limit || event.Type == flags.until {
			return nil
		}
	}
	return nil
}

func (t *tool) printEvent(event *gql.Event, wide bool) error {
	var err error
	switch {
	case t.AsJSON():
		err = render.JSONLine(t.Env.Stdout, event)
	case t.Quiet:
		_, err = fmt.Fprintln(t.Env.Stdout, event.Id)
	default:
		instance := ""
		if wide {
			instance = event.AppInstanceId + "  "
		}
		_, err = fmt.Fprintf(t.Env.Stdout, "%4d  %s  %s%-32s  %s\n", event.Seq, render.Time(&event.OccurredAt), render.Clean(instance),
			render.Clean(event.Type), render.Clean(event.Message))
	}
	return err
}
