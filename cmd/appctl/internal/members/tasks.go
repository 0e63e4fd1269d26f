package members

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Tasks returns the commands about tasks of nodes: what adapters have nodes do for members.
func Tasks(t *command.Tool) *cobra.Command {
	tasks := command.Group("tasks", "What nodes do for members", listTasks(t), showTask(t))
	tasks.Long = "Tasks of nodes: what adapters have nodes do for members. A blocker names the task that it waits " +
		"for.\n\n" + help
	return tasks
}

// listTasks lists the tasks of a member, newest first.
func listTasks(t *command.Tool) *cobra.Command {
	member := func(ctx context.Context, args []string) (string, error) { return find(ctx, t, args[0]) }
	return command.Pages(t, "list MEMBER", "List the tasks of a member, newest first", taskTable, member,
		func(ctx context.Context, member string, first int, after string) (*gql.NodeTaskPage, error) {
			answer, err := gql.ListNodeTasks(ctx, t, member, first, after)
			return &answer.NodeTasks, err
		})
}

// showTask shows a task with its output; with --wait once it has ended.
func showTask(t *command.Tool) *cobra.Command {
	var wait int
	cmd := command.Verb(t, "show TASK", "Show a task with its output", func(task *gql.NodeTask) command.View {
		return command.Detail(task, task.Id, func(p *render.Page) { pageTask(p, task) })
	}, func(ctx context.Context, args []string) (*gql.NodeTask, error) {
		answer, err := gql.GetNodeTask(ctx, t, args[0], wait)
		return &answer.NodeTask, err
	})
	cmd.Flags().IntVar(&wait, "wait", 0, "seconds to wait for its end, at most 20")
	return cmd
}

var taskTable = command.Table[gql.NodeTask]{
	Heading: []string{"ID", "KIND", "STATE", "EXIT", "OPERATION", "CREATED", "MESSAGE"},
	Row: func(task *gql.NodeTask) []string {
		return []string{task.Id, string(task.Kind), string(task.State), exitOf(task), render.Text(task.OperationId),
			render.Time(&task.CreatedAt), task.Message}
	},
}

func exitOf(task *gql.NodeTask) string {
	if task.ExitCode == nil {
		return ""
	}
	return fmt.Sprint(*task.ExitCode)
}

func pageTask(p *render.Page, task *gql.NodeTask) {
	p.Fields("Task", task.Id, "Kind", string(task.Kind), "State", string(task.State), "Exit code", exitOf(task),
		"Message", task.Message, "Member", task.MemberId, "Instance", task.InstanceId, "Node", task.NodeId,
		"Operation", render.Text(task.OperationId), "Created", render.Time(&task.CreatedAt), "Started",
		render.Time(task.StartedAt),
		"Ended", render.Time(task.EndedAt), "Spec", render.Document(task.Spec), "Result", render.Document(task.Result))
	for _, output := range []struct{ name, text string }{{"Standard output", task.Stdout},
		{"Standard error", task.Stderr}} {
		if output.text == "" {
			continue
		}
		p.Section(output.name)
		for line := range strings.Lines(output.text) {
			p.Line(strings.TrimRight(line, "\n"))
		}
	}
}
