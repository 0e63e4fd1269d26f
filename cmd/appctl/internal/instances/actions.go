package instances

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/parts"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func actions(t *command.Tool) *cobra.Command {
	list := command.Verb(t, "list INSTANCE", "List the actions of an instance's app", parts.Actions.View,
		func(ctx context.Context, args []string) ([]gql.ActionSpec, error) {
			instance, err := lookup.InstanceDetail(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			return instance.Actions, nil
		})
	list.ValidArgsFunction = lookup.CompleteInstances(t)
	return command.Group("action", "Actions of an instance's app", list, runAction(t))
}

// runAction returns the command that invokes an action. Its output is JSON in every form, as only the app knows its
// shape.
func runAction(t *command.Tool) *cobra.Command {
	var given, reason, idempotencyKey string
	var set []string
	var shared, yes bool
	cmd := t.Command("run INSTANCE ACTION", "Run an action of an instance's app",
		func(ctx context.Context, args []string) error {
			base, err := actionInput(t, given)
			if err != nil {
				return err
			}
			if _, err = command.LaidOver(base, set); err != nil { // before anything is asked
				return err
			}
			id, project, err := actsOn(ctx, t, args[0], shared)
			if err != nil {
				return err
			}
			body, err := command.LaidOverBy(inputSchema(ctx, t, id, args[1], set), base, set)
			if err != nil {
				return err
			}
			if err := sure(ctx, t, yes, id, args); err != nil {
				return err
			}
			answer, err := gql.InvokeAction(ctx, t, gql.InvokeActionInput{
				InstanceId: id, Action: args[1], Input: body, ProjectId: project, Reason: reason,
				IdempotencyKey: idempotencyKey,
			})
			if err != nil {
				return err
			}
			// The output is JSON in every form, as only the app knows its shape.
			return render.JSON(t.Env.Stdout, json.RawMessage(answer.InvokeAction.Output))
		})
	cmd.Example = `  appctl action run demo greet --set name=world
  appctl action run demo queue.submit --input @job.json
  appctl action run department-queue queue.read --shared --project demo`
	cmd.Flags().StringVar(&given, "input", "", `input as JSON; @FILE reads a file, "-" or @- standard input`)
	cmd.Flags().StringArrayVar(&set, "set", nil, "a value of the input, path.to.key=value; repeat for more")
	cmd.Flags().BoolVar(&shared, "shared", false,
		"the instance is a shared control plane that the project is attached to")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation of a destructive action")
	command.ReasonFlag(cmd, &reason)
	command.KeyFlag(cmd, &idempotencyKey)
	cmd.ValidArgsFunction = lookup.CompleteActions(t)
	return cmd
}

// sure confirms an action that its app calls destructive. It does not ask scripts, which have no terminal, nor a caller
// that may not read the instance, such as a project that is attached to it.
func sure(ctx context.Context, t *command.Tool, yes bool, id string, args []string) error {
	if yes || !t.Env.StdinTerminal {
		return nil
	}
	instance, err := lookup.InstanceDetail(ctx, t, id)
	if err != nil {
		return nil //nolint:nilerr // the action itself is refused where it has to be
	}
	for _, action := range instance.Actions {
		if action.Name == args[1] && action.Risk == gql.ActionRiskDestructive {
			return operations.Confirm(t, yes,
				"Action "+args[1]+" of "+args[0]+" is destructive: what it deletes cannot be restored.")
		}
	}
	return nil
}

// actsOn returns the instance of an action, and the project that requests it when that is not the instance's own.
func actsOn(ctx context.Context, t *command.Tool, given string, shared bool) (instance, project string, err error) {
	if !shared {
		instance, err = lookup.Instance(ctx, t, given)
		return instance, "", err
	}
	if project, err = t.ProjectID(ctx); err != nil {
		return "", "", err
	}
	instance, err = sharedInstance(ctx, t, project, given)
	return instance, project, err
}

// inputSchema returns the schema of an action's input where a pair's value could be a text that reads as something
// else; nil where none could, or the caller may not read the instance, such as a project that is attached to it.
func inputSchema(ctx context.Context, t *command.Tool, id, name string, pairs []string) json.RawMessage {
	if !values.Guesses(pairs) {
		return nil
	}
	instance, err := lookup.InstanceDetail(ctx, t, id)
	if err != nil {
		return nil
	}
	for _, action := range instance.Actions {
		if action.Name == name {
			return action.InputSchema
		}
	}
	return nil
}

// actionInput returns the input given inline or by file; nil for none.
func actionInput(t *command.Tool, given string) ([]byte, error) {
	if given == "-" {
		given = "@-"
	}
	if path, isFile := strings.CutPrefix(given, "@"); isFile {
		return t.ReadDocument("--input", path)
	}
	if given == "" {
		return nil, nil
	}
	return command.InlineDocument("--input", []byte(given))
}
