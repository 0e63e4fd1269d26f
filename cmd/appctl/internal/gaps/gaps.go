// Package gaps is the commands about the gap log: what the platform lacks for apps.
package gaps

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about the gap log.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("gaps", "What the platform lacks for apps: raised, decided, closed by a release",
		list(t), show(t), raise(t), decide(t), closed(t))
}

func list(t *command.Tool) *cobra.Command {
	var app, project string
	var states, kinds []string
	cmd := command.List(t, "list", "List the gap log, newest first", table,
		func(ctx context.Context, _ []string, limit int) (_ []gql.Gap, err error) {
			filter := gql.GapFilter{AppSlug: app, ProjectId: project}
			if filter.States, err = command.Enums("state", states, gql.AllGapState); err != nil {
				return nil, err
			}
			if filter.Kinds, err = command.Enums("kind", kinds, gql.AllGapKind); err != nil {
				return nil, err
			}
			return command.All[gql.Gap](limit, func(first int, after string) (*gql.GapPage, error) {
				answer, err := gql.ListGaps(ctx, t, filter, first, after)
				return &answer.Gaps, err
			})
		})
	cmd.Flags().StringVar(&app, "app", "",
		"only those of this app; without it and --publisher those of all, for the platform's staff")
	cmd.Flags().StringVar(&project, "publisher", "", "only those of the apps that this project, by id, publishes")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these states: open, accepted, deferred, declined, closed")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only these kinds: "+kindNames)
	return cmd
}

const kindNames = "missing_primitive, leaky_coupling, missing_key, missing_event, missing_billing_hook"

var table = command.Table[gql.Gap]{
	Heading: []string{"ID", "STATE", "KIND", "APP", "VERSION", "RAISED", "TITLE"},
	Row: func(one *gql.Gap) []string {
		return []string{one.Id, string(one.State), string(one.Kind), one.AppSlug, one.Version,
			render.Time(&one.CreatedAt), one.Title}
	},
}

func show(t *command.Tool) *cobra.Command {
	return command.Verb(t, "show GAP", "Show an entry of the gap log", view,
		func(ctx context.Context, args []string) (none gql.Gap, err error) {
			answer, err := gql.GetGap(ctx, t, args[0])
			if err != nil {
				return none, err
			}
			found, ok := answer.Node.(*gql.GetGapNodeGap)
			if !ok {
				return none, command.NotFoundf("there is no gap %s", args[0])
			}
			return found.Gap, nil
		})
}

// view shows an entry with what was decided.
func view(one gql.Gap) command.View {
	condition := ""
	if one.Condition != nil {
		condition = string(*one.Condition)
	}
	return command.One(one, one.Id, "Kind", string(one.Kind), "State", string(one.State), "App", one.AppSlug,
		"Version", one.Version, "Condition", condition, "Title", one.Title, "Description", one.Description,
		"Instance", render.Text(one.InstanceId), "Evidence", strings.Join(one.Evidence, ", "),
		"Raised by", one.RaisedBy.Name, "Raised", render.Time(&one.CreatedAt),
		"Decided by", name(one.DecidedBy), "Decided", render.Time(one.DecidedAt), "Decision", one.Decision,
		"Closed by", name(one.ClosedBy), "Closed", render.Time(one.ClosedAt), "Release", one.Release,
		"Release version", render.Text(one.ReleaseManifestId), "Close reason", one.CloseReason)
}

// name returns the name of an actor; empty for nil.
func name(who *gql.Actor) string {
	if who == nil {
		return ""
	}
	return who.Name
}

func raise(t *command.Tool) *cobra.Command {
	var input gql.RaiseGapInput
	var kind string
	cmd := command.Verb(t, "raise SLUG", "Note what the platform lacks for an app", view,
		func(ctx context.Context, args []string) (none gql.Gap, err error) {
			if input.Kind, err = command.Enum("kind", kind, gql.AllGapKind); err != nil {
				return none, err
			}
			input.AppSlug = args[0]
			answer, err := gql.RaiseGap(ctx, t, input)
			return answer.RaiseGap, err
		})
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "what is missing: "+kindNames)
	flags.StringVar(&input.Title, "title", "", "what is missing, in one line")
	flags.StringVar(&input.Description, "description", "", "what is missing, and what it was needed for")
	flags.StringVar(&input.Version, "version", "", "the version that it was found with")
	flags.StringVar(&input.InstanceId, "instance", "", "id of the instance that it was found with")
	flags.StringArrayVar(&input.Evidence, "evidence", nil, "an id or a link that shows it; may be given more than once")
	command.Need(cmd, "kind", "title", "description")
	command.KeyFlag(cmd, &input.IdempotencyKey)
	return cmd
}

// decisions are the states that a decision leads to.
var decisions = []gql.GapState{gql.GapStateAccepted, gql.GapStateDeferred, gql.GapStateDeclined}

func decide(t *command.Tool) *cobra.Command {
	var input gql.DecideGapInput
	var to string
	cmd := command.Verb(t, "decide GAP", "Decide a gap: accepted, deferred or declined; for the platform's staff", view,
		func(ctx context.Context, args []string) (none gql.Gap, err error) {
			if input.To, err = command.Enum("to", to, decisions); err != nil {
				return none, err
			}
			input.GapId = args[0]
			answer, err := gql.DecideGap(ctx, t, input)
			return answer.DecideGap, err
		})
	cmd.Flags().StringVar(&to, "to", "", "accepted, deferred or declined")
	command.Need(cmd, "to")
	command.NeededReasonFlag(cmd, &input.Reason)
	return cmd
}

func closed(t *command.Tool) *cobra.Command {
	var input gql.CloseGapInput
	cmd := command.Verb(t, "close GAP", "Close an accepted gap with the release that contains what was missing", view,
		func(ctx context.Context, args []string) (gql.Gap, error) {
			input.GapId = args[0]
			answer, err := gql.CloseGap(ctx, t, input)
			return answer.CloseGap, err
		})
	cmd.Flags().StringVar(&input.Release, "release", "", "the release that closed it: of the platform, or an address")
	cmd.Flags().StringVar(&input.ManifestId, "manifest", "", "id of the version of the app that closed it")
	command.Need(cmd, "release")
	command.NeededReasonFlag(cmd, &input.Reason)
	return cmd
}
