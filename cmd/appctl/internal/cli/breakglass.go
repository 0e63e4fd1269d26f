package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) breakGlassCommand() *cobra.Command {
	return group("break-glass", "Set the rules aside in an emergency; flagged everywhere, and never without a reason", t.breakGlassEnd(), t.breakGlassGrant())
}

func (t *tool) breakGlassEnd() *cobra.Command {
	var input gql.BreakGlassEndOperationInput
	end := t.command("end-operation OPERATION", "End an operation that cannot end by itself, as FAILED and unverified", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.OperationId = args[0]
			answer, err := gql.BreakGlassEndOperation(ctx, c, input)
			if err != nil {
				return err
			}
			op := answer.BreakGlassEndOperation
			return t.showOne(op, op.Id, "Kind", string(op.Kind), "State", string(op.State), "Message", op.Message)
		})
	end.Flags().StringVar(&input.Reason, "reason", "", "why nothing else will do, 20 to 1,000 characters")
	end.Flags().StringVar(&input.Incident, "incident", "", "the incident's reference")
	_ = end.MarkFlagRequired("reason")
	return end
}

func (t *tool) breakGlassGrant() *cobra.Command {
	var input gql.BreakGlassGrantRoleInput
	grant := t.command("grant USER ROLE", "Give a role for a short time, also to oneself", cobra.ExactArgs(2),
		func(ctx context.Context, args []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			input.SubjectId, input.Role = args[0], args[1]
			if input.TenantId == "" {
				if input.ProjectId, err = t.projectID(ctx, c); err != nil {
					return err
				}
			}
			answer, err := gql.BreakGlassGrantRole(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showBinding(answer.BreakGlassGrantRole)
		})
	grant.Long = "Give a role in the project, or in a whole tenant with --tenant, for 5 to 240 minutes. It ends by itself."
	grant.Flags().StringVar(&input.TenantId, "tenant", "", "in this whole tenant, by id")
	grant.Flags().IntVar(&input.DurationMinutes, "minutes", 60, "how long, 5 to 240 minutes")
	grant.Flags().StringVar(&input.Reason, "reason", "", "why nothing else will do, 20 to 1,000 characters")
	grant.Flags().StringVar(&input.Incident, "incident", "", "the incident's reference")
	_ = grant.MarkFlagRequired("reason")
	return grant
}
