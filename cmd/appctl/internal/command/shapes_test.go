package command_test

import (
	"context"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
)

// TestTheUseLineBoundsTheArguments checks how many arguments a command takes, by what its use line names.
func TestTheUseLineBoundsTheArguments(t *testing.T) {
	t.Parallel()
	for use, bounds := range map[string][2]int{
		"list": {0, 0}, "show INSTANCE": {1, 1}, "grant USER ROLE": {2, 2}, "enrol [NAME]": {0, 1},
		"why PERMISSION [OBJECT]": {1, 2}, "push [LAYOUT] HOST/REPOSITORY:TAG": {1, 2},
	} {
		for n := range 4 {
			cmd := new(command.Tool).Command(use, "", func(context.Context, []string) error { return nil })
			root := &cobra.Command{Use: "root", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(cmd)
			root.SetArgs(append([]string{cmd.Name()}, []string{"a", "b", "c"}[:n]...))
			err := root.Execute()
			require.Equal(t, bounds[0] <= n && n <= bounds[1], err == nil, "%s with %d arguments: %v", use, n, err)
		}
	}
}
