package daemons

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// StartLogins starts the SSH servers of logins, whose munged runs. One that runs reads its configuration again.
func (w Work) StartLogins(ctx context.Context, members []adapter.Member, cluster layout.Cluster) error {
	if len(members) == 0 {
		return nil
	}
	w.Progress("starting logins", 80, "starting sshd on the logins")
	if err := w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		if err := w.Steps(ctx, member, Step{"login-dirs", Shell(login.Dirs)}); err != nil {
			return err
		}
		return login.Certify(ctx, w.Client(), w.Do, member)
	}); err != nil {
		return err
	}
	if err := w.BringPeople(ctx, members, "-login"); err != nil {
		return err
	}
	return w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		err := w.Steps(ctx, member,
			Step{"sshd-conf", login.Config(cluster)},
			Step{"sshd-reload", Shell(login.Reload)},
			Step{"sshd", login.Server()},
			Step{"sshd-ready", Probe(30*time.Second, login.Ready(cluster))},
		)
		if err != nil {
			return w.WithLog(ctx, member, login.Process, err)
		}
		return w.LoginInService(member, cluster)
	})
}

// LoginInService reports a login that people may use.
func (w Work) LoginInService(member adapter.Member, cluster layout.Cluster) error {
	return w.Member(member.ID, adapter.MemberActive, adapter.Healthy, map[string]any{"version": cluster.Version})
}
