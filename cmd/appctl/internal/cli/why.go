package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// whyCommand asks why somebody may, or may not, do something.
func (t *tool) whyCommand() *cobra.Command {
	var subject string
	why := t.command("why PERMISSION [OBJECT]", "Why you, or somebody else, may or may not do something", cobra.RangeArgs(1, 2),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			input := gql.ExplainPermissionInput{PermissionKey: args[0]}
			if len(args) > 1 {
				input.ObjectId = &args[1]
			}
			if subject != "" {
				input.SubjectId = &subject
			}
			answer, err := gql.ExplainPermission(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showWhy(&answer.ExplainPermission)
		})
	why.Flags().StringVar(&subject, "subject", "", "a person, service account, operation or node by id, instead of yourself")
	return why
}

func (t *tool) showWhy(said *gql.PermissionExplanation) error {
	verdict, grounds := "no", said.Missing
	if said.Allowed {
		verdict, grounds = "yes", said.Because
	}
	var rows [][]string
	var ids []string
	for i := range grounds {
		ground := &grounds[i]
		rows = append(rows, []string{ground.Kind, ground.Id, ground.Role, ground.Scope, render.Time(ground.ExpiresAt), ground.Message})
		if ground.Id != "" {
			ids = append(ids, ground.Id)
		}
	}
	var ask [][]string
	for _, person := range said.AskWhom {
		ask = append(ask, []string{person.Id, person.Name})
	}
	return t.show(view{JSON: said, IDs: ids, Page: func(p *render.Page) {
		p.Fields("Subject", said.Subject.Name+" ("+said.Subject.Id+")", "Permission", said.PermissionKey, "Allows", said.Description, "Allowed", verdict)
		p.Table([]string{"GROUND", "ID", "ROLE", "SCOPE", "ENDS", "WHY"}, rows)
		if len(ask) > 0 {
			p.Table([]string{"ASK", "NAME"}, ask)
		}
	}})
}
