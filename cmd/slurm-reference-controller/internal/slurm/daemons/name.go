package daemons

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// nameScript has the member know the controller's name by the address $1. The file is written in its place: something
// may be mounted there.
const nameScript = `hosts=$(grep -v " ` + layout.ControllerName + `\$" /etc/hosts)
printf "%s\n%s ` + layout.ControllerName + `\n" "$hosts" "$1" > /etc/hosts`

// NameController makes the controller of a cluster whose controller may move known to a member. The name of the step
// ends with round.
func (w Work) NameController(ctx context.Context, member adapter.Member, round string) error {
	controller, err := w.Controller()
	if err != nil || !layout.HasVolume(controller, layout.SlotState) {
		return err
	}
	return w.Steps(ctx, member, Step{"controller-name" + round, adapter.RunCommand{
		Command: []string{"sh", "-c", nameScript, "name", controller.Host()}}})
}
