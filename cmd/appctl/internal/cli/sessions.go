package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func (t *tool) sessionsCommand() *cobra.Command {
	return group("sessions", "Your logins, at browsers and command lines", t.sessionsList(), t.sessionsEnd(), t.sessionsEndAll())
}

func (t *tool) sessionsList() *cobra.Command {
	return t.command("list", "List your open sessions, newest first", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.ListSessions(ctx, c)
		if err != nil {
			return err
		}
		found := append([]gql.Session{}, answer.Viewer.Sessions...)
		var rows [][]string
		var ids []string
		for i := range found {
			session := &found[i]
			rows = append(rows, []string{session.Id, yes(session.Current), session.Method, session.Origin, session.Agent,
				render.Time(&session.CreatedAt), render.Time(&session.ExpiresAt)})
			ids = append(ids, session.Id)
		}
		return t.show(view{JSON: found, IDs: ids, Page: func(p *render.Page) {
			p.Table([]string{"ID", "THIS ONE", "BY", "FROM", "CLIENT", "BEGAN", "ENDS"}, rows)
		}})
	})
}

func (t *tool) sessionsEnd() *cobra.Command {
	return t.command("end SESSION", "End one of your sessions at once", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.EndSession(ctx, c, args[0])
		if err != nil {
			return err
		}
		ended := answer.EndSession
		return t.showOne(ended, ended.Id, "Client", ended.Agent, "From", ended.Origin)
	})
}

func (t *tool) sessionsEndAll() *cobra.Command {
	var user, reason string
	end := t.command("end-all", "End every session, this one too; of somebody else with --user", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		answer, err := gql.LogoutEverywhere(ctx, c, user, reason)
		if err != nil {
			return err
		}
		return t.show(view{JSON: map[string]any{"ended": answer.LogoutEverywhere}, IDs: []string{fmt.Sprint(answer.LogoutEverywhere)},
			Page: func(p *render.Page) { p.Line(plural(answer.LogoutEverywhere, "session") + " ended") }})
	})
	end.Flags().StringVar(&user, "user", "", "person's id; yourself if not given")
	end.Flags().StringVar(&reason, "reason", "", "why, kept in the audit")
	return end
}
