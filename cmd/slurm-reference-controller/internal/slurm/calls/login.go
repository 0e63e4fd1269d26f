package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// account returns the action that lets in a person who is about to log in, and returns the account's name.
func account(desk *people.Desk, keeper *login.Keeper) adapter.ActionFunc {
	return func(ctx context.Context, call *adapter.Call) (any, error) {
		logins := call.Of(layout.ComponentLogin)
		if len(logins) == 0 {
			return nil, adapter.Reject("NO_LOGIN", "members",
				"the cluster has no login: add a member of the component login")
		}
		who, err := desk.Admit(ctx, call)
		if err != nil {
			return nil, err
		}
		if who == nil {
			return nil, adapter.Reject("NO_ACCOUNT", "requester", "only people and service accounts have accounts")
		}
		if err := prepared(ctx, call, desk, keeper, *who); err != nil {
			return nil, err
		}
		return map[string]any{"user": who.Name, "home": who.Home()}, nil
	}
}

// prepared sees to it that the logins let the person in. One is enough: another may be lost with its node.
func prepared(
	ctx context.Context, call *adapter.Call, desk *people.Desk, keeper *login.Keeper, who people.Person,
) error {
	var failures []error
	ready := 0
	for _, member := range call.Of(layout.ComponentLogin) {
		if !member.Node.IsReachable() {
			continue
		}
		err := keeper.Refresh(ctx, call.Client(), call.Do, member)
		switch {
		case err != nil:
			failures = append(failures, err)
			call.Log.Warn("a login could not be certified", "member", member.ID, "error", err)
		case desk.Told(member, who):
			ready++
		}
	}
	if ready == 0 {
		return adapter.ErrorBody{Code: adapter.CodeUnavailable, Retryable: true,
			Message: fmt.Sprintf("no login of the cluster accepts logins now: %v", errors.Join(failures...))}
	}
	return nil
}

// loginCommand succeeds where a login's server takes connections.
func loginCommand() adapter.RunCommand { return daemons.Shell(login.Listens) }

// lookAtLogins adds to an observation how the logins are. It looks at all at once.
func lookAtLogins(ctx context.Context, call *adapter.Call, seen *adapter.Observation) {
	logins := call.Of(layout.ComponentLogin)
	if len(logins) == 0 {
		return
	}
	found := make([]adapter.MemberObservation, len(logins))
	var group sync.WaitGroup
	for i, member := range logins {
		group.Go(func() {
			found[i] = adapter.MemberObservation{ID: member.ID, Health: adapter.HealthUnknown,
				Message: "the node did not answer"}
			result, err := call.Try(ctx, member, "login-"+member.ID, loginCommand(), adapter.Within(callTime))
			switch {
			case err != nil || result.State != adapter.TaskSucceeded && result.ExitCode == nil:
			case result.State == adapter.TaskSucceeded:
				found[i].Health, found[i].Message = adapter.Healthy, "sshd accepts connections"
			default:
				found[i].Health, found[i].Message = adapter.Unhealthy, "sshd does not accept connections"
			}
		})
	}
	group.Wait()
	judgeLogins(seen, found)
}

// judgeLogins sums the logins up. Jobs run on without them, so that they make a cluster degraded at worst.
func judgeLogins(seen *adapter.Observation, logins []adapter.MemberObservation) {
	good := 0
	for _, one := range logins {
		if one.Health == adapter.Healthy {
			good++
		}
	}
	role := adapter.RoleObservation{ComponentKey: layout.ComponentLogin, Health: adapter.Degraded,
		Summary: fmt.Sprintf("%d of %d accept connections", good, len(logins))}
	switch good {
	case len(logins):
		role.Health = adapter.Healthy
	case 0:
		role.Health = adapter.Unhealthy
	}
	if good < len(logins) {
		seen.Message += fmt.Sprintf("; %d of %d logins accept connections", good, len(logins))
		if seen.Health == adapter.Healthy {
			seen.Health = adapter.Degraded
		}
	}
	seen.Members, seen.Roles = append(seen.Members, logins...), append(seen.Roles, role)
}
