package members

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/operations"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// label returns the command that lays labels over those that a member has. The platform takes the whole set, so it is
// read first.
func label(t *command.Tool) *cobra.Command {
	var f operations.ChangeFlags
	var only bool
	cmd := t.Command("label MEMBER [NAME=VALUE | NAME-]…", "Label a member; NAME- removes a label",
		func(ctx context.Context, args []string) error {
			deadline, err := f.Deadline()
			if err != nil {
				return err
			}
			if len(args) == 1 && !only {
				return command.Usagef("which labels? Give NAME=VALUE or NAME-, or --only to remove all")
			}
			id, err := find(ctx, t, args[0])
			if err != nil {
				return err
			}
			set, err := newLabels(ctx, t, id, args[1:], only)
			if err != nil {
				return err
			}
			return f.Begin(ctx, t, func(ctx context.Context) (operations.Started, error) {
				answer, err := gql.LabelMember(ctx, t, gql.LabelMemberInput{
					MemberId: id, Labels: set, DeadlineSeconds: deadline, Reason: f.Reason, IdempotencyKey: f.Key,
				})
				return changed(t, "labels", &answer.LabelMember), err
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Long = "Label a member. The pairs are added to its labels, and replace those of the same name.\n\n" + help
	cmd.Example = "  appctl members label demo/worker/0 zone=a rack-"
	cmd.Flags().BoolVar(&only, "only", false, "remove every label that is not given")
	f.Register(cmd, "5m")
	return cmd
}

// newLabels returns the whole new set, as JSON: the labels that the member has, unless only the given ones are to
// stay, with the pairs laid over them.
func newLabels(ctx context.Context, t *command.Tool, id string, pairs []string, only bool) (json.RawMessage, error) {
	set := map[string]string{}
	if !only {
		answer, err := gql.GetMember(ctx, t, id)
		if err != nil {
			return nil, err
		}
		set = labels(answer.Member.Labels)
	}
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		dropped, away := strings.CutSuffix(pair, "-")
		switch {
		case given && name != "":
			set[name] = value
		case !given && away && dropped != "":
			delete(set, dropped)
		default:
			return nil, command.Usagef("%q: must be NAME=VALUE, or NAME- to remove it", pair)
		}
	}
	return json.Marshal(set)
}
