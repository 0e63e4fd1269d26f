package reach

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// actionPrefix begins the names of the actions by which an app lets people in by certificates: one says how its API is
// reached, and each of the others signs a request of its level. What they mean to the app is the app's.
const actionPrefix = "kubeconfig."

// levels are what certificates are signed for, the most first.
var levels = []string{"admin", "member", "viewer"}

// way is how an API is reached, as the app says it.
type way struct {
	Endpoint          string `json:"endpoint"`
	Authority         string `json:"authority"`
	ServerName        string `json:"serverName"`
	CredentialVersion string `json:"credentialVersion"`
}

// kubeconfig prints a configuration that holds no key and no certificate of the caller: its user is this program.
func kubeconfig(t *command.Tool) *cobra.Command {
	var level, port string
	cmd := t.Command("kubeconfig INSTANCE", "Print a kubeconfig for an instance, with short-lived certificates",
		func(ctx context.Context, args []string) error {
			instance, err := lookup.InstanceDetail(ctx, t, args[0])
			if err != nil {
				return err
			}
			if level, err = levelFor(ctx, t, instance, level); err != nil {
				return err
			}
			var to way
			if err := act(ctx, t, instance.Id, "cluster", map[string]string{}, &to); err != nil {
				return err
			}
			if port, err = portOf(ctx, port); err != nil {
				return err
			}
			document, err := configuration(t, instance, to, level, port)
			if err != nil {
				return err
			}
			return render.JSON(t.Env.Stdout, document)
		})
	cmd.Long = `Print a kubeconfig for an instance whose app issues client certificates.

It contains no key and no certificate: each call runs this program, which requests a certificate that is valid for
minutes, for a key that stays in appctl's folder, and forwards the connection through the platform, from a port of this
machine. You may do what your permissions in the project allow: --as requests less. It works while you are logged in.`
	cmd.Example = `  appctl kubeconfig research > research.kubeconfig
  KUBECONFIG=research.kubeconfig your-client get pods`
	cmd.ValidArgsFunction = lookup.CompleteInstances(t)
	cmd.Flags().StringVar(&level, "as", "", "viewer, member or admin (default the highest that you may use)")
	cmd.Flags().StringVar(&port, "port", "0", "the port of this machine; 0 takes a free one")
	return cmd
}

// levelFor returns the level that the flag names, or the highest whose permission key the caller has.
func levelFor(ctx context.Context, t *command.Tool, instance *gql.InstanceDetail, asked string) (string, error) {
	keys := map[string]string{}
	for _, action := range instance.Actions {
		if level, ok := strings.CutPrefix(action.Name, actionPrefix); ok && slices.Contains(levels, level) {
			keys[level] = action.PermissionKey
		}
	}
	switch {
	case len(keys) == 0:
		return "", command.Usagef("%s: its app issues no client certificates: it has no actions %s…", instance.Name,
			actionPrefix)
	case asked != "" && keys[asked] == "":
		return "", command.Usagef("--as %q: must be viewer, member or admin", asked)
	case asked != "":
		return asked, nil
	}
	held, err := gql.ListPermissions(ctx, t, instance.ProjectId)
	if err != nil {
		return "", err
	}
	for _, level := range levels {
		if key := keys[level]; key != "" && slices.Contains(held.Viewer.Permissions, key) {
			return level, nil
		}
	}
	return "", &client.Error{Code: client.CodeForbidden,
		Message: "you have no access to it: " + keys["viewer"] + " is needed in its project"}
}

// act carries out one of the actions.
func act(ctx context.Context, t *command.Tool, instance, name string, input, output any) error {
	raw, err := json.Marshal(input)
	if err != nil {
		return err
	}
	answer, err := gql.InvokeAction(ctx, t, gql.InvokeActionInput{InstanceId: instance, Action: actionPrefix + name,
		Input: raw, IdempotencyKey: client.NewKey()})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.InvokeAction.Output, output); err != nil {
		return fmt.Errorf("action %s%s: %w", actionPrefix, name, err)
	}
	return nil
}

// portOf returns the port that the flag names, or for 0 one that is free now.
func portOf(ctx context.Context, asked string) (string, error) {
	number, err := strconv.ParseUint(asked, 10, 16)
	if err != nil {
		return "", command.Usagef("--port: %q is not a port from 0 to 65535", asked)
	}
	if number != 0 {
		return asked, nil
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", err
	}
	return port, listener.Close()
}

type object map[string]any

// configuration is the kubeconfig.
func configuration(t *command.Tool, instance *gql.InstanceDetail, to way, level, port string) (object, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	words := []string{"kube-credential", instance.Id, "--as=" + level, "--port=" + port, "--endpoint=" + to.Endpoint,
		"--version-of=" + to.CredentialVersion}
	for _, flag := range [][2]string{{"--server", t.Server}, {"--context", t.Context}} {
		if flag[1] != "" {
			words = append(words, flag[0]+"="+flag[1])
		}
	}
	plugin := object{"apiVersion": to.CredentialVersion, "command": program, "args": words, "interactiveMode": "Never"}
	if server := t.Env.Getenv("APPCTL_SERVER"); server != "" {
		plugin["env"] = []object{{"name": "APPCTL_SERVER", "value": server}}
	}
	name := instance.Name
	return object{"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": object{"server": "https://127.0.0.1:" + port,
			"tls-server-name":            to.ServerName,
			"certificate-authority-data": base64.StdEncoding.EncodeToString([]byte(to.Authority))}}},
		"users":    []object{{"name": name, "user": object{"exec": plugin}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}, nil
}
