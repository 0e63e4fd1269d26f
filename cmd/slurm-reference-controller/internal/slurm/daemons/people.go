package daemons

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// BringPeople makes the accounts of all whom the cluster has met on members that come up. The names of the steps end
// with round.
func (w Work) BringPeople(ctx context.Context, members []adapter.Member, round string) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	register, err := w.Do(ctx, controller, "register"+round, Shell(people.ReadRegister))
	if err != nil || register.Stdout == "" {
		return err
	}
	return w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		return w.Steps(ctx, member, Step{"people" + round, people.MakePacked(register.Stdout)})
	})
}
