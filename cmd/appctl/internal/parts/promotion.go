package parts

import (
	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Promotion is the flags of a step of trust, which artifacts and manifests take alike.
type Promotion struct {
	// Reason is why.
	Reason string

	to string
}

// Register adds the flags.
func (p *Promotion) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.to, "to", "", "stage it goes to: staged, canary, active, deprecated or retired")
	command.Need(cmd, "to")
	command.NeededReasonFlag(cmd, &p.Reason)
}

// Stage returns the stage that it goes to.
func (p *Promotion) Stage() (gql.Stage, error) { return command.Enum("to", p.to, gql.AllStage) }
