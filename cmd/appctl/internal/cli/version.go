package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
)

func (t *tool) versionCommand() *cobra.Command {
	return t.command("version", "Show what this appctl was built from", cobra.NoArgs, func(context.Context, []string) error {
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
		return t.show(view{
			JSON: map[string]string{"revision": revision, "time": at, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH},
			IDs:  []string{revision},
			Page: func(p *render.Page) {
				p.Fields("Revision", revision, "Time", at, "Go", runtime.Version(), "Platform", runtime.GOOS+"/"+runtime.GOARCH)
			},
		})
	})
}
