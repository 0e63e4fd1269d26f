// Package audit is the commands about the audit: read and search it, verify its hash chain, and export it.
package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Command returns the commands about the audit.
func Command(t *command.Tool) *cobra.Command {
	return command.Group("audit", "Who did what", list(t), search(t), verify(t), export(t))
}

func list(t *command.Tool) *cobra.Command {
	return command.Pages(t, "list", "List privileged attempts in the project, allowed and denied, newest first",
		table, t.InProject,
		func(ctx context.Context, project string, first int, after string) (*gql.AuditEntryPage, error) {
			answer, err := gql.ListAuditEntries(ctx, t, project, first, after)
			return &answer.AuditEntries, err
		})
}

// table shows entries; --quiet writes their ids, which no column shows.
var table = command.Table[gql.AuditEntry]{
	Heading: []string{"TIME", "ACTOR", "ACTION", "VERDICT", "OBJECT", "REASON"},
	Row: func(entry *gql.AuditEntry) []string {
		return []string{
			render.Time(&entry.CreatedAt), entry.Actor.Name, entry.Action, verdict(entry), entry.ObjectId, entry.Reason,
		}
	},
	ID: func(entry *gql.AuditEntry) string { return entry.Id },
}

// verdict returns whether an attempt was allowed or denied, whether it then failed, how often it was repeated, and
// whether it used break-glass.
func verdict(entry *gql.AuditEntry) string {
	text := "allowed"
	switch {
	case !entry.Allowed:
		text = "denied " + entry.Code
	case entry.Code != "":
		text = "failed " + entry.Code
	}
	if entry.Repeats > 1 {
		text += fmt.Sprintf(" x%d", entry.Repeats)
	}
	return text + render.If(entry.BreakGlass, " BREAK-GLASS")
}

// sought are the flags of a search that need reading.
type sought struct {
	filter          gql.AuditFilterInput
	platform        bool
	allowed, denied bool
	breakGlass      bool
	from, to        string
}

// search returns the command that searches the audit: in the project, unless a tenant or the platform is given.
func search(t *command.Tool) *cobra.Command {
	var s sought
	cmd := command.List(t, "search", "Search the audit by actor, object, key, time or correlation id, newest first",
		table, func(ctx context.Context, _ []string, limit int) ([]gql.AuditEntry, error) {
			if err := s.read(ctx, t); err != nil {
				return nil, err
			}
			return command.All[gql.AuditEntry](limit, func(first int, after string) (*gql.AuditEntryPage, error) {
				answer, err := gql.SearchAudit(ctx, t, s.filter, first, after)
				return &answer.SearchAudit, err
			})
		})
	cmd.Long = "Search the audit, newest first: in the project, in a tenant with --tenant, or everywhere with " +
		"--platform. Each flag narrows the search."
	flags, filter := cmd.Flags(), &s.filter
	flags.StringVar(&filter.TenantId, "tenant", "", "in this whole tenant, by id")
	flags.BoolVar(&s.platform, "platform", false, "on the whole platform")
	flags.StringVar(&filter.ActorId, "actor", "", "by this actor, by id")
	flags.StringSliceVar(&filter.ActorKinds, "actor-kind", nil,
		"by these kinds of actor, such as USER or SERVICE_ACCOUNT")
	flags.StringVar(&filter.ObjectId, "object", "", "on this object, by id")
	flags.StringVar(&filter.PermissionKey, "key", "", "checked against this permission key")
	flags.StringVar(&filter.Action, "action", "", "with calls of this field of the API")
	flags.StringVar(&filter.CorrelationId, "correlation", "", "with this correlation id")
	flags.BoolVar(&s.allowed, "allowed", false, "only what was allowed")
	flags.BoolVar(&s.denied, "denied", false, "only what was denied")
	flags.BoolVar(&s.breakGlass, "break-glass", false, "only break-glass")
	flags.StringVar(&s.from, "from", "", "from this time on: a time, or how long ago")
	flags.StringVar(&s.to, "to", "", "before this time: a time, or how long ago")
	cmd.MarkFlagsMutuallyExclusive("tenant", "platform")
	cmd.MarkFlagsMutuallyExclusive("allowed", "denied")
	return cmd
}

// read reads the flags into the filter, and finds the project where the search is not wider.
func (s *sought) read(ctx context.Context, t *command.Tool) (err error) {
	if _, err := t.Connect(); err != nil {
		return err
	}
	if s.allowed || s.denied {
		s.filter.Allowed = &s.allowed
	}
	s.filter.BreakGlass = command.Given(s.breakGlass)
	if s.filter.From, err = past("--from", s.from); err != nil {
		return err
	}
	if s.filter.To, err = past("--to", s.to); err != nil {
		return err
	}
	if !s.platform && s.filter.TenantId == "" {
		s.filter.ProjectId, err = t.ProjectID(ctx)
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
		return nil, command.Usagef("%s %q: must be a time such as 2026-11-22T10:00:00Z or an age like 2h", flag, text)
	}
	at := time.Now().Add(-ago)
	return &at, nil
}
