package catalog

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// onboarding returns the command that checks whether a version of an app is ready for every tenant.
func onboarding(t *command.Tool) *cobra.Command {
	var input gql.CheckAppOnboardingInput
	var keep bool
	cmd := command.Verb(t, "onboarding SLUG",
		"Check the seven conditions of onboarding for a version of an app", func(v command.View) command.View {
			return v
		},
		func(ctx context.Context, args []string) (none command.View, err error) {
			input.AppSlug = args[0]
			if keep {
				answer, err := gql.CheckAppOnboarding(ctx, t, input)
				return viewRecord(&answer.CheckAppOnboarding), err
			}
			if input.Reason != "" {
				return none, command.Usagef("--reason needs --keep")
			}
			answer, err := gql.GetAppOnboarding(ctx, t, args[0], input.Version)
			return viewOnboarding(&answer.AppOnboarding), err
		})
	cmd.Long = `Check the seven conditions of onboarding for a version of an app from what is recorded: its instances, operations,
events and calls, its reports, artifacts and runbooks. Each is PASSED, FAILED or NOT_KNOWN, with its evidence.
--keep stores the check with its date, and adds each condition that failed to the gap log.`
	cmd.Flags().StringVar(&input.Version, "version", "", "version; the active one, or else the newest, if not given")
	cmd.Flags().BoolVar(&keep, "keep", false, "store the check, and add each condition that failed to the gap log")
	command.ReasonFlag(cmd, &input.Reason)
	cmd.ValidArgsFunction = lookup.CompleteApps(t)
	return cmd
}

// viewOnboarding shows the checks of a version, and those that were kept.
func viewOnboarding(found *gql.AppOnboarding) command.View {
	return command.Detail(found, found.ManifestId, func(p *render.Page) {
		p.Fields("App", found.AppSlug, "Version", found.Version, "Stage", string(found.Stage), "Manifest",
			found.ManifestId, "Ready", render.YesNo(found.Passed), "Required for ACTIVE", render.YesNo(found.Required),
			"Checked", render.Time(&found.CheckedAt))
		pageChecks(p, found.Checks)
		kept.Under(p, "Stored checks", found.Records)
	})
}

// viewRecord shows a check that was kept.
func viewRecord(found *gql.OnboardingRecord) command.View {
	return command.Detail(found, found.Id, func(p *render.Page) {
		p.Fields("Id", found.Id, "Manifest", found.ManifestId, "Ready", render.YesNo(found.Passed),
			"Checked", render.Time(&found.CheckedAt), "By", found.CheckedBy.Name, "Reason", found.Reason)
		pageChecks(p, found.Checks)
	})
}

// pageChecks shows the seven, and below them what each rests on and what to do.
func pageChecks(p *render.Page, found []gql.OnboardingCheck) {
	p.Section("Conditions")
	checks.On(p, found)
	for i := range found {
		one := &found[i]
		rests.Under(p, string(one.Condition), one.Evidence)
	}
	for i := range found {
		if one := &found[i]; one.Remedy != "" {
			p.Section("To do for " + string(one.Condition))
			p.Line("  " + one.Remedy)
		}
	}
}

var checks = command.Table[gql.OnboardingCheck]{
	Heading: []string{"CONDITION", "VERDICT", "AT", "GAP", "WHY"},
	Row: func(one *gql.OnboardingCheck) []string {
		return []string{string(one.Condition), string(one.Verdict), render.Time(one.At), render.Text(one.GapId),
			one.Message}
	},
}

var rests = command.Table[gql.OnboardingEvidence]{
	Heading: []string{"WHAT", "STATE", "AT", "WHERE"},
	Row: func(one *gql.OnboardingEvidence) []string {
		where := one.Url
		if one.Id != nil {
			where = *one.Id
		}
		return []string{one.What, one.State, render.Time(one.At), where}
	},
}

var kept = command.Table[gql.OnboardingRecord]{
	Heading: []string{"ID", "CHECKED", "READY", "NOT PASSED", "BY", "REASON"},
	Row: func(one *gql.OnboardingRecord) []string {
		lacking := 0
		for i := range one.Checks {
			if one.Checks[i].Verdict != gql.OnboardingVerdictPassed {
				lacking++
			}
		}
		return []string{one.Id, render.Time(&one.CheckedAt), render.YesNo(one.Passed), fmt.Sprint(lacking),
			one.CheckedBy.Name, one.Reason}
	},
}
