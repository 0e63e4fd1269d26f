package artifacts

import (
	"cmp"
	"context"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/publish"
)

// build returns the command that writes an image layout. It needs neither a registry nor a container tool.
func build(t *command.Tool) *cobra.Command {
	var image publish.Image
	var files []string
	cmd := t.Command("build DIR", "Build a small image from self-contained programs into an OCI image layout",
		func(_ context.Context, args []string) error {
			for _, file := range files {
				from, to, _ := strings.Cut(file, ":")
				image.Files = append(image.Files, publish.File{From: from, To: to})
			}
			digest, err := publish.Build(args[0], image)
			if err != nil {
				return err
			}
			made := map[string]any{"layout": args[0], "digest": digest, "platform": image.Platform}
			return t.Show(command.Fields(made, digest, "Layout", args[0], "Digest", digest, "Platform", image.Platform))
		})
	cmd.Long = `The same files give the same digest, on any machine and at any time. A layout that is built again for
another platform contains both.`
	cmd.Example = `  appctl artifact build out --file bin/server --env PORT=8080 --user 65532:65532
  appctl artifact push out registry.example.com/team/server:1.2.0`
	flags := cmd.Flags()
	flags.StringArrayVar(&files, "file", nil,
		"file to include, PATH or PATH:PATH-IN-IMAGE; the first one is run; repeat for more")
	flags.StringArrayVar(&image.Entrypoint, "entrypoint", nil, "what is run, a word each; the first file if not given")
	flags.StringArrayVar(&image.Env, "env", nil, "variable, NAME=value; repeat for more")
	flags.StringVar(&image.User, "user", "", "user and group that run it, such as 65532:65532")
	flags.StringVar(&image.Platform, "platform", "linux/"+runtime.GOARCH, "platform that the programs run on")
	flags.Lookup("platform").DefValue = "this machine's architecture on linux"
	command.Need(cmd, "file")
	return cmd
}

// registryFlags are how a registry is reached. Its password comes from a file or the environment, never from the
// command line, where others could see it.
type registryFlags struct {
	user, passwordFile string
	plain              bool
}

func (f *registryFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.user, "registry-user", "",
		"user at the registry (env APPCTL_REGISTRY_USER); the login of the container tools if not given")
	flags.StringVar(&f.passwordFile, "registry-password-file", "",
		`file with the user's password (env APPCTL_REGISTRY_PASSWORD); "-" reads standard input`)
	flags.BoolVar(&f.plain, "plain-http", false, "reach the registry without TLS")
}

// registry returns the registry that the flags and the environment describe.
func (f *registryFlags) registry(env command.Environment) (publish.Registry, error) {
	out := publish.Registry{
		User:     cmp.Or(f.user, env.Getenv("APPCTL_REGISTRY_USER")),
		Password: env.Getenv("APPCTL_REGISTRY_PASSWORD"), PlainHTTP: f.plain,
	}
	if f.passwordFile != "" {
		text, err := values.ReadFile(f.passwordFile, env.Stdin)
		if err != nil {
			return out, command.Usagef("registry password: %w", err)
		}
		out.Password = strings.TrimRight(string(text), "\r\n")
	}
	if out.User != "" && out.Password == "" {
		return out,
			command.Usagef("the registry's user needs a password: --registry-password-file or APPCTL_REGISTRY_PASSWORD")
	}
	return out, nil
}

// push returns the command that pushes what build wrote, or single files as one artifact.
func push(t *command.Tool) *cobra.Command {
	var where registryFlags
	var files []string
	var artifactType string
	cmd := command.Verb(t, "push [LAYOUT] HOST/REPOSITORY:TAG",
		"Push an image layout, or files as an OCI artifact, to a registry",
		func(made *publish.Pushed) command.View {
			return command.Fields(made, made.Ref, "Ref", made.Ref, "Digest", made.Digest, "Media type", made.MediaType,
				"Platforms", strings.Join(made.Platforms, ", "))
		},
		func(ctx context.Context, args []string) (*publish.Pushed, error) {
			if (len(args) == 2) == (len(files) > 0) {
				return nil, command.Usagef("give the folder of an image layout, or --file for each file of an artifact")
			}
			registry, err := where.registry(t.Env)
			if err != nil {
				return nil, err
			}
			if len(args) == 2 {
				return registry.PushLayout(ctx, args[0], args[1])
			}
			return registry.PushFiles(ctx, files, artifactType, args[0])
		})
	cmd.Example = `  appctl artifact push out registry.example.com/team/server:1.2.0 --registry-user ci --registry-password-file /run/secrets/registry
  appctl artifact push --file model.safetensors --artifact-type application/vnd.example.model.v1 registry.example.com/team/model:3`
	cmd.Flags().StringArrayVar(&files, "file", nil, "file of an artifact; repeat for more")
	cmd.Flags().StringVar(&artifactType, "artifact-type", "application/octet-stream", "type of the artifact")
	where.register(cmd)
	return cmd
}
