package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
)

// version returns the command that shows what this program was built from.
func version(t *command.Tool) *cobra.Command {
	return t.Command("version", "Show what this appctl was built from", func(context.Context, []string) error {
		revision, at := "unknown", ""
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, setting := range info.Settings {
				switch setting.Key {
				case "vcs.revision":
					revision = setting.Value
				case "vcs.time":
					at = setting.Value
				}
			}
		}
		platform := runtime.GOOS + "/" + runtime.GOARCH
		answer := map[string]string{"revision": revision, "time": at, "go": runtime.Version(), "platform": platform}
		return t.Show(command.Fields(answer, revision, "Revision", revision, "Time", at, "Go", runtime.Version(),
			"Platform", platform))
	})
}
