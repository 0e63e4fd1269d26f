package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
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
			return t.show(view{json: instance.Actions, ids: names, page: func(p *render.Page) {
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
			id, err := t.instanceID(ctx, c, args[0])
			if err != nil {
				return err
			}
			answer, err := gql.InvokeAction(ctx, c, gql.InvokeActionInput{
				InstanceId: id, Action: args[1], Input: body, IdempotencyKey: key(idempotencyKey),
			})
			if err != nil {
				return err
			}
			return t.showOutput(answer.InvokeAction.Output)
		})
	run.Example = `  appctl action run demo greet --set name=world
  appctl action run demo queue.submit --input @job.json`
	run.Flags().StringVar(&input, "input", "", `input as JSON; @FILE reads a file, "-" or @- standard input`)
	run.Flags().StringArrayVar(&set, "set", nil, "a value of the input, path.to.key=value; repeat for more")
	keyFlag(run, &idempotencyKey)
	run.ValidArgsFunction = t.completeActions
	return run
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
		return nil, usageError{err}
	}
	return built, nil
}

// showOutput writes an action's output as JSON in every form, as only the app knows its shape.
func (t *tool) showOutput(output json.RawMessage) error {
	return render.JSON(t.env.Stdout, output)
}
