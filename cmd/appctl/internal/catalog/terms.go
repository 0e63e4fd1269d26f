package catalog

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// setTerms returns the command that sets what the steps of an app's versions need.
func setTerms(t *command.Tool) *cobra.Command {
	var input gql.SetPromotionTermsInput
	cmd := command.Verb(t, "terms SLUG", "Set what the promotions of an app need besides evidence", viewTerms,
		func(ctx context.Context, args []string) (gql.AppTerms, error) {
			input.AppSlug = args[0]
			answer, err := gql.SetPromotionTerms(ctx, t, input)
			return answer.SetPromotionTerms, err
		})
	cmd.Flags().IntVar(&input.MinLaunches, "min-launches", 5,
		"launches of the canary that must have succeeded before ACTIVE")
	cmd.Flags().IntVar(&input.MinMinutes, "min-minutes", 60, "minutes as the canary before ACTIVE")
	cmd.Flags().IntVar(&input.GraceHours, "grace-hours", 24, "hours as DEPRECATED before RETIRED")
	cmd.Flags().BoolVar(&input.SecondApprover, "second-approver", false,
		"the step to ACTIVE needs another person than the steps to STAGED and CANARY")
	cmd.Flags().BoolVar(&input.SmokedArtifacts, "smoked-artifacts", true,
		"each pinned artifact needs a signed report of a smoke of its kind before CANARY; =false to need none")
	cmd.Flags().BoolVar(&input.RequireOnboarding, "require-onboarding", false,
		"all conditions of onboarding must have passed before ACTIVE")
	command.NeededReasonFlag(cmd, &input.Reason)
	return cmd
}

func viewTerms(app gql.AppTerms) command.View {
	terms := app.PromotionTerms
	return command.One(app, app.Id, "Slug", app.Slug, "Launches", strconv.Itoa(terms.MinLaunches),
		"Minutes", strconv.Itoa(terms.MinMinutes), "Grace hours", strconv.Itoa(terms.GraceHours),
		"Second approver", render.YesNo(terms.SecondApprover), "Smoked artifacts", render.YesNo(terms.SmokedArtifacts),
		"Require onboarding", render.YesNo(terms.RequireOnboarding))
}
