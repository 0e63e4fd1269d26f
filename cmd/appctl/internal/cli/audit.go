package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) auditCommand() *cobra.Command {
	var limit int
	list := t.command("list", "List privileged attempts in the project, allowed and denied, newest first", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, project, err := t.scope(ctx)
			if err != nil {
				return err
			}
			found, err := collect[gql.AuditEntry](client.All[gql.AuditEntry](limit, func(first int, after string) (*gql.AuditEntryPage, error) {
				answer, err := gql.ListAuditEntries(ctx, c, project, first, after)
				if err != nil {
					return nil, err
				}
				return &answer.AuditEntries, nil
			}))
			if err != nil {
				return err
			}
			return t.showAudit(found)
		})
	limitFlag(list, &limit)
	return group("audit", "Who did what", list, t.auditSearch(), t.auditVerify(), t.auditExport())
}

// sought are the flags of a search that need reading.
type sought struct {
	filter          gql.AuditFilterInput
	platform        bool
	allowed, denied bool
	breakGlass      bool
	from, to        string
	limit           int
}

func (t *tool) auditSearch() *cobra.Command {
	var s sought
	search := t.command("search", "Search the audit by actor, object, key, time or correlation id, newest first", cobra.NoArgs,
		func(ctx context.Context, _ []string) error {
			c, err := t.connect()
			if err != nil {
				return err
			}
			if err := t.scopeSearch(ctx, c, &s); err != nil {
				return err
			}
			found, err := collect[gql.AuditEntry](client.All[gql.AuditEntry](s.limit, func(first int, after string) (*gql.AuditEntryPage, error) {
				answer, err := gql.SearchAudit(ctx, c, s.filter, first, after)
				if err != nil {
					return nil, err
				}
				return &answer.SearchAudit, nil
			}))
			if err != nil {
				return err
			}
			return t.showAudit(found)
		})
	search.Long = "Search the audit, newest first: in the project, in a tenant with --tenant, or everywhere with --platform. Every flag narrows."
	set, f := search.Flags(), &s.filter
	set.StringVar(&f.TenantId, "tenant", "", "in this whole tenant, by id")
	set.BoolVar(&s.platform, "platform", false, "on the whole platform")
	set.StringVar(&f.ActorId, "actor", "", "by this actor, by id")
	set.StringSliceVar(&f.ActorKinds, "actor-kind", nil, "by these kinds of actor, such as USER or SERVICE_ACCOUNT")
	set.StringVar(&f.ObjectId, "object", "", "on this object, by id")
	set.StringVar(&f.PermissionKey, "key", "", "asked for this permission key")
	set.StringVar(&f.Action, "action", "", "called this field of the API")
	set.StringVar(&f.CorrelationId, "correlation", "", "tied together by this correlation id")
	set.BoolVar(&s.allowed, "allowed", false, "only what was allowed")
	set.BoolVar(&s.denied, "denied", false, "only what was denied")
	set.BoolVar(&s.breakGlass, "break-glass", false, "only break-glass")
	set.StringVar(&s.from, "from", "", "not before: a time, or how long ago")
	set.StringVar(&s.to, "to", "", "before: a time, or how long ago")
	limitFlag(search, &s.limit)
	search.MarkFlagsMutuallyExclusive("tenant", "platform")
	search.MarkFlagsMutuallyExclusive("allowed", "denied")
	return search
}

// scopeSearch fills in where is searched, and what the flags say in other words than the API.
func (t *tool) scopeSearch(ctx context.Context, c *client.Client, s *sought) (err error) {
	if s.allowed || s.denied {
		s.filter.Allowed = &s.allowed
	}
	if s.breakGlass {
		s.filter.BreakGlass = &s.breakGlass
	}
	if s.filter.From, err = past("--from", s.from); err != nil {
		return err
	}
	if s.filter.To, err = past("--to", s.to); err != nil {
		return err
	}
	if !s.platform && s.filter.TenantId == "" {
		s.filter.ProjectId, err = t.projectID(ctx, c)
	}
	return err
}

// past reads a time, or how long ago one was; nil when empty.
func past(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	ago, err := time.ParseDuration(text)
	if err != nil {
		return nil, usagef("%s %q: a time such as 2026-11-22T10:00:00Z, or how long ago, such as 2h", flag, text)
	}
	at := time.Now().Add(-ago)
	return &at, nil
}

func (t *tool) showAudit(found []gql.AuditEntry) error {
	var rows [][]string
	var ids []string
	for _, entry := range found {
		verdict := "allowed"
		if !entry.Allowed {
			verdict = "denied " + entry.Code
		}
		if entry.Repeats > 1 {
			verdict += fmt.Sprintf(" x%d", entry.Repeats)
		}
		if entry.BreakGlass {
			verdict += " BREAK-GLASS"
		}
		rows = append(rows, []string{render.Time(&entry.CreatedAt), entry.Actor.Name, entry.Action, verdict, entry.ObjectId, entry.Reason})
		ids = append(ids, entry.Id)
	}
	return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
		p.Table([]string{"TIME", "ACTOR", "ACTION", "VERDICT", "OBJECT", "REASON"}, rows)
	}})
}
