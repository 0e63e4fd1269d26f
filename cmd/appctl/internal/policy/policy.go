// Package policy is the commands about what a project may choose: policy overlays, and entitlements to apps.
package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Commands returns the commands about policy and entitlements.
func Commands(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{
		command.Group("policy", "Policy overlays, and the choices that they leave to a project",
			show(t), effective(t), preview(t), set(t)),
		command.Group("entitlements", "The project's rights to launch apps, and their limits",
			listEntitlements(t), grantEntitlement(t), revokeEntitlement(t, "revoke APP")),
	}
}

// Admin returns the short forms for operators and their automation.
func Admin(t *command.Tool) []*cobra.Command {
	return []*cobra.Command{entitle(t), revokeEntitlement(t, "unentitle APP")}
}

// A place is where an overlay is: the platform, a tenant, or the project of the run.
type place struct {
	platform bool
	tenant   string
}

func (p *place) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.platform, "platform", false, "the platform's overlay instead of the project's")
	cmd.Flags().StringVar(&p.tenant, "tenant", "", "the overlay of this tenant, by id, instead of the project's")
	cmd.MarkFlagsMutuallyExclusive("platform", "tenant")
}

// project returns the project of the place; empty for a tenant's and for the platform's.
func (p *place) project(ctx context.Context, t *command.Tool) (string, error) {
	if p.platform || p.tenant != "" {
		return "", nil
	}
	return t.ProjectID(ctx)
}

func show(t *command.Tool) *cobra.Command {
	var at place
	project := func(ctx context.Context, _ []string) (string, error) { return at.project(ctx, t) }
	cmd := command.Pages(t, "show", "Show the overlay in force, and those before it", table, project,
		func(ctx context.Context, project string, first int, after string) (*gql.PolicyOverlayPage, error) {
			answer, err := gql.ListPolicyOverlays(ctx, t, at.tenant, project, first, after)
			return &answer.PolicyOverlays, err
		})
	at.register(cmd)
	return cmd
}

// table shows revisions, and the document of the newest below them.
var table = command.Table[gql.PolicyOverlay]{
	Heading: []string{"ID", "LEVEL", "REVISION", "BY", "WRITTEN", "UNTIL", "REASON"},
	Row: func(one *gql.PolicyOverlay) []string {
		until := "in force"
		if one.SupersededAt != nil {
			until = render.Time(one.SupersededAt)
		}
		return []string{
			one.Id, string(one.Scope), fmt.Sprint(one.Revision), one.UpdatedBy, render.Time(&one.CreatedAt), until,
			one.Reason,
		}
	},
	Below: func(p *render.Page, found []gql.PolicyOverlay) { p.Fields("Document", string(found[0].Document)) },
}

func effective(t *command.Tool) *cobra.Command {
	return command.Of(t, "effective", "Show the choices that policy leaves to the project, and the origin of each rule",
		t.InProject,
		func(found *gql.EffectivePolicy) command.View {
			return command.View{JSON: found, IDs: []string{found.Hash},
				Page: func(p *render.Page) { ruleTable.On(p, found.Rules) }}
		},
		func(ctx context.Context, project string, _ []string) (*gql.EffectivePolicy, error) {
			answer, err := gql.GetEffectivePolicy(ctx, t, project)
			return &answer.EffectivePolicy, err
		})
}

var ruleTable = command.Table[gql.EffectiveRule]{
	Heading: []string{"ABOUT", "EFFECT", "VALUES", "LEVEL", "FINAL", "MEANING"},
	Row: func(rule *gql.EffectiveRule) []string {
		what := render.Bound(rule.Limit, strings.Join(rule.Values, ", "))
		return []string{
			rule.Dimension, string(rule.Effect), what, string(rule.Origin), render.If(rule.Final, "final"),
			rule.Message,
		}
	},
}

// A draft is an overlay that is to be written in the place of another.
type draft struct {
	at       place
	reason   string
	revision int
}

func (d *draft) register(cmd *cobra.Command) {
	d.at.register(cmd)
	cmd.Flags().IntVar(&d.revision, "revision", -1,
		"the revision that it replaces; the one in force if not given")
}

// input reads the document and finds the revision that it takes the place of.
func (d *draft) input(ctx context.Context, t *command.Tool, path string) (gql.SetPolicyInput, error) {
	input := gql.SetPolicyInput{Reason: d.reason, ExpectedRevision: d.revision, TenantId: command.Given(d.at.tenant)}
	text, err := values.ReadFile(path, t.Env.Stdin)
	if err != nil {
		return input, err
	}
	if !json.Valid(text) {
		return input, command.Usagef("%s is not JSON", path)
	}
	project, err := d.at.project(ctx, t)
	if err != nil {
		return input, err
	}
	input.Document, input.ProjectId = text, command.Given(project)
	if d.revision >= 0 {
		return input, nil
	}
	answer, err := gql.ListPolicyOverlays(ctx, t, d.at.tenant, project, 1, "")
	input.ExpectedRevision = 0
	if found := answer.PolicyOverlays.Edges; len(found) > 0 {
		input.ExpectedRevision = found[0].Node.Revision
	}
	return input, err
}

// preview returns the command that shows what an overlay would deny, without writing it.
func preview(t *command.Tool) *cobra.Command {
	var d draft
	cmd := command.Verb(t, "preview FILE", "Show who and what an overlay would newly deny; - reads standard input",
		viewPreview,
		func(ctx context.Context, args []string) (*gql.PolicyPreview, error) {
			input, err := d.input(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			answer, err := gql.PreviewPolicy(ctx, t, input)
			return &answer.PreviewPolicy, err
		})
	d.register(cmd)
	cmd.Flags().StringVar(&d.reason, "reason", "preview", "why it would be written")
	return cmd
}

// viewPreview shows why an overlay would be refused, and each object that it would newly deny with every rule.
func viewPreview(found *gql.PolicyPreview) command.View {
	var denied [][]string
	var ids []string
	for _, impact := range found.NewlyDenied {
		object := cmp.Or(render.Text(impact.ObjectId), "-")
		for _, reason := range impact.Reasons {
			denied = append(denied, []string{impact.ProjectId, object, impact.Name, reason.Code, reason.Message})
		}
		if impact.ObjectId != nil {
			ids = append(ids, *impact.ObjectId)
		}
	}
	return command.View{JSON: found, IDs: ids, Page: func(p *render.Page) {
		if len(found.Problems) > 0 {
			problemTable.On(p, found.Problems)
		}
		if len(denied) > 0 {
			p.Table([]string{"PROJECT", "OBJECT", "NAME", "RULE", "WHY"}, denied)
		}
		p.Fields("Newly denied", fmt.Sprint(found.NewlyDeniedTotal), "Allowed again",
			fmt.Sprint(found.NewlyAllowedTotal))
	}}
}

var problemTable = command.Table[gql.PolicyProblem]{
	Heading: []string{"REFUSED FOR", "AT", "WHY"},
	Row: func(problem *gql.PolicyProblem) []string {
		return []string{problem.Code, problem.Path, problem.Message}
	},
}

// set returns the command that writes an overlay. It is refused when the revision that it replaces has moved.
func set(t *command.Tool) *cobra.Command {
	var d draft
	cmd := command.Verb(t, "set FILE", "Write an overlay that replaces the one in force; - reads standard input",
		func(made gql.PolicyOverlay) command.View { return table.As(made, []gql.PolicyOverlay{made}) },
		func(ctx context.Context, args []string) (none gql.PolicyOverlay, err error) {
			input, err := d.input(ctx, t, args[0])
			if err != nil {
				return none, err
			}
			answer, err := gql.SetPolicy(ctx, t, input)
			return answer.SetPolicy, err
		})
	cmd.Example = `  appctl policy set project.json --reason "no more than eight GPUs until the audit"
  echo '{"final":{"skus":["old"]}}' | appctl policy set - --platform --reason "end of life"`
	d.register(cmd)
	command.NeededReasonFlag(cmd, &d.reason)
	return cmd
}
