package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

var actionHeading = []string{"NAME", "RISK", "PERMISSION KEY", "TITLE"}

func actionRows(actions []gql.ActionSpec) [][]string {
	var rows [][]string
	for _, action := range actions {
		rows = append(rows, []string{action.Name, string(action.Risk), action.PermissionKey, action.DisplayName})
	}
	return rows
}

func (t *tool) actionCommand() *cobra.Command {
	list := t.command("list INSTANCE", "List what an instance's app can be asked to do", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			_, instance, err := t.instanceDetail(ctx, args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, action := range instance.Actions {
				names = append(names, action.Name)
			}
			return t.show(view{JSON: instance.Actions, IDs: names, Page: func(p *render.Page) {
				p.Table(actionHeading, actionRows(instance.Actions))
			}})
		})
	list.ValidArgsFunction = t.completeInstances
	return group("action", "What an instance's app can be asked to do", list, t.actionRun())
}

func (t *tool) actionRun() *cobra.Command {
	var input string
	var set []string
	var idempotencyKey string
	var shared bool
	run := t.command("run INSTANCE ACTION", "Ask an instance's app to do something", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			body, err := t.actionInput(input, set)
			if err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			id, project, err := t.actsOn(ctx, c, args[0], shared)
			if err != nil {
				return err
			}
			answer, err := gql.InvokeAction(ctx, c, gql.InvokeActionInput{
				InstanceId: id, Action: args[1], Input: body, ProjectId: project, IdempotencyKey: key(idempotencyKey),
			})
			if err != nil {
				return err
			}
			return t.showOutput(answer.InvokeAction.Output)
		})
	run.Example = `  appctl action run demo greet --set name=world
  appctl action run demo queue.submit --input @job.json
  appctl action run department-queue queue.read --shared --project demo`
	run.Flags().StringVar(&input, "input", "", `input as JSON; @FILE reads a file, "-" or @- standard input`)
	run.Flags().StringArrayVar(&set, "set", nil, "a value of the input, path.to.key=value; repeat for more")
	run.Flags().BoolVar(&shared, "shared", false, "the instance is a shared control plane that the project is attached to")
	keyFlag(run, &idempotencyKey)
	run.ValidArgsFunction = t.completeActions
	return run
}

// actsOn is the instance that is asked, and the project that asks when it is another one than the instance's.
func (t *tool) actsOn(ctx context.Context, c *client.Client, given string, shared bool) (instance, project string, err error) {
	if !shared {
		instance, err = t.instanceID(ctx, c, given)
		return instance, "", err
	}
	if project, err = t.projectID(ctx, c); err != nil {
		return "", "", err
	}
	instance, err = sharedInstance(ctx, c, project, given)
	return instance, project, err
}

// actionInput is the input given inline, by file, or by pairs.
func (t *tool) actionInput(given string, set []string) ([]byte, error) {
	if given == "-" {
		given = "@-"
	}
	if path, isFile := strings.CutPrefix(given, "@"); isFile {
		return t.document("--input", path, set)
	}
	var base []byte
	if given != "" {
		var err error
		if base, err = values.Document("--input", []byte(given)); err != nil {
			return nil, invalidf("%s", err)
		}
	}
	built, err := values.Build(base, set)
	if err != nil {
		return nil, usageError(err)
	}
	return built, nil
}

// showOutput writes an action's output as JSON in every form, as only the app knows its shape.
func (t *tool) showOutput(output json.RawMessage) error {
	return render.JSON(t.Env.Stdout, output)
}
