package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// policyPlace is where an overlay stands: the platform, a tenant, or the project of the context.
type policyPlace struct {
	platform bool
	tenant   string
}

func (p *policyPlace) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.platform, "platform", false, "the platform's overlay instead of the project's")
	cmd.Flags().StringVar(&p.tenant, "tenant", "", "the overlay of this tenant, by id, instead of the project's")
	cmd.MarkFlagsMutuallyExclusive("platform", "tenant")
}

// of is the tenant or the project of the place; both are empty for the platform's.
func (p *policyPlace) of(ctx context.Context, t *tool) (c *client.Client, tenant, project string, err error) {
	if p.platform || p.tenant != "" {
		c, err = t.connect()
		return c, p.tenant, "", err
	}
	c, project, err = t.scope(ctx)
	return c, "", project, err
}

func (t *tool) policyCommand() *cobra.Command {
	return group("policy", "Policy overlays, and what they leave of a project's choices", t.policyShow(), t.policyEffective(), t.policyPreview(), t.policySet())
}

func (t *tool) policyShow() *cobra.Command {
	var at policyPlace
	var limit int
	show := t.command("show", "Show the overlay that holds, and those before it", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, tenant, project, err := at.of(ctx, t)
		if err != nil {
			return err
		}
		found, err := collect[gql.PolicyOverlay](client.All[gql.PolicyOverlay](limit, func(first int, after string) (*gql.PolicyOverlayPage, error) {
			answer, err := gql.ListPolicyOverlays(ctx, c, tenant, project, first, after)
			if err != nil {
				return nil, err
			}
			return &answer.PolicyOverlays, nil
		}))
		if err != nil {
			return err
		}
		return t.showOverlays(found, found)
	})
	at.flags(show)
	limitFlag(show, &limit)
	return show
}

// showOverlays shows revisions, and the document of the newest.
func (t *tool) showOverlays(answer any, found []gql.PolicyOverlay) error {
	var rows [][]string
	var ids []string
	for i := range found {
		one := &found[i]
		until := render.Time(one.SupersededAt)
		if one.SupersededAt == nil {
			until = "holds"
		}
		rows = append(rows, []string{one.Id, string(one.Scope), fmt.Sprint(one.Revision), one.UpdatedBy, render.Time(&one.CreatedAt), until, one.Reason})
		ids = append(ids, one.Id)
	}
	return t.show(view{JSON: answer, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"ID", "LEVEL", "REVISION", "BY", "WRITTEN", "UNTIL", "REASON"}, rows)
		if len(found) > 0 {
			p.Fields("Document", string(found[0].Document))
		}
	}})
}

func (t *tool) policyEffective() *cobra.Command {
	return t.command("effective", "Show what policy leaves of the project's choices, with the origin of every rule", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			answer, err := gql.GetEffectivePolicy(ctx, c, project)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, rule := range answer.EffectivePolicy.Rules {
				what := strings.Join(rule.Values, ", ")
				if rule.Limit != nil {
					what = fmt.Sprint(*rule.Limit)
				}
				rows = append(rows, []string{rule.Dimension, string(rule.Effect), what, string(rule.Origin), finalText(rule.Final), rule.Message})
			}
			return t.show(view{JSON: answer.EffectivePolicy, IDs: []string{answer.EffectivePolicy.Hash}, Page: func(p *render.Page) {
				p.Table([]string{"ABOUT", "EFFECT", "VALUES", "LEVEL", "FINAL", "MEANING"}, rows)
			}})
		})
}

func finalText(final bool) string {
	if final {
		return "final"
	}
	return ""
}

// policyInput reads the document and finds the revision that it takes the place of.
func (t *tool) policyInput(ctx context.Context, at *policyPlace, path, reason string, revision int) (*client.Client, gql.SetPolicyInput, error) {
	input := gql.SetPolicyInput{Reason: reason, ExpectedRevision: revision}
	text, err := values.ReadFile(path, t.Env.Stdin)
	if err != nil {
		return nil, input, err
	}
	if !json.Valid(text) {
		return nil, input, usagef("%s: is not JSON", path)
	}
	input.Document = text
	c, tenant, project, err := at.of(ctx, t)
	if err != nil {
		return nil, input, err
	}
	if tenant != "" {
		input.TenantId = &tenant
	}
	if project != "" {
		input.ProjectId = &project
	}
	if revision >= 0 {
		return c, input, nil
	}
	answer, err := gql.ListPolicyOverlays(ctx, c, tenant, project, 1, "")
	if err != nil {
		return nil, input, err
	}
	input.ExpectedRevision = 0
	if found := answer.PolicyOverlays.Edges; len(found) > 0 {
		input.ExpectedRevision = found[0].Node.Revision
	}
	return c, input, nil
}

const revisionHelp = "the revision that it takes the place of; the one that holds now if not given"

func (t *tool) policyPreview() *cobra.Command {
	var at policyPlace
	var reason string
	var revision int
	preview := t.command("preview FILE", "Show who and what an overlay would newly deny; - reads standard input", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, input, err := t.policyInput(ctx, &at, args[0], reason, revision)
			if err != nil {
				return err
			}
			answer, err := gql.PreviewPolicy(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showPreview(&answer.PreviewPolicy)
		})
	at.flags(preview)
	preview.Flags().StringVar(&reason, "reason", "preview", "why it would be written")
	preview.Flags().IntVar(&revision, "revision", -1, revisionHelp)
	return preview
}

func (t *tool) showPreview(found *gql.PolicyPreview) error {
	var problems, denied [][]string
	var ids []string
	for _, problem := range found.Problems {
		problems = append(problems, []string{problem.Code, problem.Path, problem.Message})
	}
	for _, impact := range found.NewlyDenied {
		for _, reason := range impact.Reasons {
			denied = append(denied, []string{impact.ProjectId, firstOf(text(impact.ObjectId), "-"), impact.Name, reason.Code, reason.Message})
		}
		if impact.ObjectId != nil {
			ids = append(ids, *impact.ObjectId)
		}
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		if len(problems) > 0 {
			p.Table([]string{"REFUSED FOR", "AT", "WHY"}, problems)
		}
		if len(denied) > 0 {
			p.Table([]string{"PROJECT", "OBJECT", "NAME", "RULE", "WHY"}, denied)
		}
		p.Fields("Newly denied", fmt.Sprint(found.NewlyDeniedTotal), "Allowed again", fmt.Sprint(found.NewlyAllowedTotal))
	}})
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

func (t *tool) policySet() *cobra.Command {
	var at policyPlace
	var reason string
	var revision int
	set := t.command("set FILE", "Write an overlay in the place of the one that holds; - reads standard input", cobra.ExactArgs(1),
		func(ctx context.Context, args []string) error {
			c, input, err := t.policyInput(ctx, &at, args[0], reason, revision)
			if err != nil {
				return err
			}
			answer, err := gql.SetPolicy(ctx, c, input)
			if err != nil {
				return err
			}
			return t.showOverlays(answer.SetPolicy, []gql.PolicyOverlay{answer.SetPolicy})
		})
	set.Example = `  appctl policy set project.json --reason "no more than eight GPUs until the audit"
  echo '{"final":{"skus":["old"]}}' | appctl policy set - --platform --reason "end of life"`
	at.flags(set)
	set.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	set.Flags().IntVar(&revision, "revision", -1, revisionHelp)
	_ = set.MarkFlagRequired("reason")
	return set
}
