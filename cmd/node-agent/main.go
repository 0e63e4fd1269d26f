// Command node-agent runs on every enrolled node. It enrols the node with a one-time token, takes node
// tasks from the platform by its public API, and does them in the sandboxes of members: running
// commands, writing files, supervising processes, probing, and proving what is left of a member.
//
// Killing or stopping the agent stops no member: their inits go on, and a new agent on the same state
// directory finds them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/agent"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/idrange"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/traces"
)

// version is set at build time by -ldflags "-X main.version=…".
var version = ""

func main() {
	// does not return when this process is a part of a member; a shim has not even come here
	memberinit.Dispatch(os.Args)
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node-agent:", err)
		stop()
		os.Exit(1)
	}
}

// buildVersion falls back to what the Go tool recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

const long = `Runs on a node: takes node tasks from the platform and does them in the sandboxes of members.

On its first start it enrols the node with a one-time token, from --enrol-token-file or the environment
variable NODE_AGENT_ENROL_TOKEN. It then keeps a credential of its own in the state directory, which it
rotates. The token is needed again only when the credential was lost or revoked; a new token in the same
file is then picked up without a restart.

As root, each member is an OCI container with user ids of its own, run by crun or runc. Its root is a curated copy
of what the node has installed, which the agent builds in the state directory before the first member; it takes as
much space as /usr. Without a runtime the node takes no member, and its inventory gives the reason.

Without root, members are plain processes below a directory: only their paths are separate. The inventory
lists what is not isolated.

Stopping the agent (SIGTERM, SIGINT, even SIGKILL) stops no member. A new agent with the same state
directory continues where the old one stopped.`

const example = `  node-agent --platform-url https://platform.example --state-dir /var/lib/node-agent \
    --name node-1 --address 10.0.0.1 --enrol-token-file /run/enrol-token --region eu-1 --sku h100-8`

func command() *cobra.Command {
	options := agent.Options{Version: buildVersion(), EnrolToken: os.Getenv("NODE_AGENT_ENROL_TOKEN")}
	var level string
	cmd := &cobra.Command{
		Use: "node-agent", Short: "The agent of an enrolled node", Long: long, Example: example,
		Version: options.Version,
		Args:    cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), options, level) },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(pullCommand(), rootCommand())
	hostname, _ := os.Hostname()
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&options.PlatformURL, "platform-url", os.Getenv("NODE_AGENT_PLATFORM_URL"),
		"address of the platform, http or https (env NODE_AGENT_PLATFORM_URL)")
	flags.StringVar(&options.StateDir, "state-dir", "/var/lib/node-agent",
		"directory for credential, journal and members")
	flags.StringVar(&options.EnrolTokenFile, "enrol-token-file", "",
		"file with the one-time enrolment token (else env NODE_AGENT_ENROL_TOKEN)")
	flags.StringVar(&options.Name, "name", hostname, "name of the node, unique on the platform")
	flags.StringVar(&options.Address, "address", "", "address by which other nodes reach this one")
	flags.IntVar(&options.CPUs, "cpus", 0, "processors to declare; 0 counts them")
	flags.IntVar(&options.MemoryMiB, "memory-mib", 0, "memory to declare, in MiB; 0 measures it")
	flags.IntVar(&options.GPUs, "gpus", -1, "GPUs to declare; -1 counts them")
	flags.StringVar(&options.GPUModel, "gpu-model", "", "model of the GPUs")
	flags.BoolVar(&options.SimulatedGPUs, "simulated-gpus", false, "the declared GPUs are simulated")
	flags.StringVar(&options.Region, "region", "", "region of the node")
	flags.StringVar(&options.SKU, "sku", "", "stock-keeping unit: what the node is sold as")
	flags.StringToStringVar(&options.Labels, "label", nil, "free label, key=value; may be repeated")
	flags.Int64Var(&options.CacheBytes, "cache-bytes", agent.DefaultCacheBytes,
		"how much of artifacts the node keeps in the state directory, in bytes")
	flags.Int64Var(&options.ProcessLogBytes, "process-log-bytes", logfile.DefaultBound,
		"how much the node keeps of what each process of a member prints, in bytes; members that run keep theirs")
	flags.Int64Var(&options.LogBytes, "log-bytes", agent.DefaultLogBytes,
		"how much the node keeps of what all processes of its members print, in bytes")
	flags.StringVar(&options.ChecksDir, "checks-dir", "",
		"folder of executables that check this node once a minute, 16 at most, 10 seconds each; they exit with 0 "+
			"(good), 1 (warning) or 2 (bad) and print one line")
	flags.StringArrayVar(&options.Storages, "storage", nil,
		"storage that volumes are served from, NAME=KIND:DIR with KIND shared or local; may be repeated, "+
			"16 times at most")
	flags.StringVar(&options.Runtime, "runtime", "",
		"OCI runtime of members: crun, runc, or the path of one; empty takes crun, or else runc")
	flags.StringVar(&options.SandboxRuntime, "sandbox-runtime", "",
		"OCI runtime that serves the class SANDBOX, such as runsc: a name or a path; empty offers none")
	flags.StringVar(&options.VMRuntime, "vm-runtime", "",
		"OCI runtime that serves the class VM, such as kata-runtime: a name or a path; empty offers none")
	flags.StringVar(&options.MemberRoot, "member-root", "",
		"root of members that \"node-agent root\" built before; empty builds versions in the state directory")
	flags.Uint32Var(&options.IDFirst, "id-first", idrange.DefaultFirst,
		"first of the user and group ids that members get, 65,536 each")
	flags.StringVar(&options.CgroupParent, "cgroup-parent", "",
		"parent of the members' cgroups; empty names one by the state directory")
	flags.BoolVar(&options.MemberNetwork, "member-network", true,
		"as root, give members networks of their own, with rules on the node; --address must be an IPv4 address of "+
			"the node")
	flags.BoolVar(&options.ForceProcess, "no-namespaces", false, "keep members as plain processes even as root")
	flags.BoolVar(&options.SingleTenant, "single-tenant", false,
		"offer slices of this node although its members are plain processes: all of them belong to one tenant")
	flags.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func run(ctx context.Context, options agent.Options, level string) error {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("log-level: %q is not debug, info, warn or error", level)
	}
	if options.PlatformURL == "" {
		return errors.New("platform-url: must be given")
	}
	// The token must not be inherited by anything that is started.
	err := os.Unsetenv("NODE_AGENT_ENROL_TOKEN")
	if err != nil {
		return fmt.Errorf("clear the environment: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: threshold}))
	if options.Traces, err = openTraces(ctx, options.Name); err != nil {
		return err
	}
	a, err := agent.New(ctx, options, log)
	if err != nil {
		return err
	}
	defer a.Close()
	defer closeTraces(options.Traces, log)
	return a.Run(ctx)
}

// openTraces returns what sends the spans of tasks. A receiver's key must not be inherited by anything that is started.
func openTraces(ctx context.Context, node string) (*traces.Source, error) {
	source, err := traces.Open(ctx, node, os.Getenv)
	for _, secret := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		err = errors.Join(err, os.Unsetenv(secret))
	}
	return source, err
}

// lastSpans bounds the time in which the last spans are sent.
const lastSpans = 3 * time.Second

// closeTraces sends the last spans. A receiver that does not answer is not a failure of the agent.
func closeTraces(source *traces.Source, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	if err := source.Close(ctx); err != nil {
		log.Warn("the last spans were not sent", "error", err)
	}
}
