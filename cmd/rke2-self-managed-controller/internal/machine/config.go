package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Config is an instance's configuration.
type Config struct {
	// CNI is the network plugin.
	CNI string `json:"cni"`
	// ClusterCIDR and ServiceCIDR are the blocks of pods and services.
	ClusterCIDR string `json:"clusterCidr"`
	ServiceCIDR string `json:"serviceCidr"`
	// Release is the release of RKE2 that members run, in /usr/local/lib/rke2/RELEASE/bin; empty for the one that their
	// nodes have in the usual place.
	Release string `json:"release"`
	// SnapshotSchedule is when each server makes a snapshot by itself, in cron's words; empty for RKE2's own.
	SnapshotSchedule string `json:"snapshotSchedule"`
	// SnapshotsKept is how many of these each server keeps; 0 for RKE2's own number.
	SnapshotsKept int `json:"snapshotsKept"`
	// UpgradeBatch is how many agents change their version at a time; 0 for one.
	UpgradeBatch int `json:"upgradeBatch"`
	// DevicePlugin is the image of NVIDIA's device plugin, by its digest; empty for none.
	DevicePlugin string `json:"devicePlugin"`
}

// artifacts that a manifest may pin, for nodes that do not have a release yet.
const (
	programArtifact = "rke2"
	imagesArtifact  = "rke2-images"
)

// ProgramPath is where the program of the configured release lies.
func (c Config) ProgramPath() string {
	if c.Release == "" {
		return "/usr/local/bin/rke2"
	}
	return "/usr/local/lib/rke2/" + c.Release + "/bin/rke2"
}

// found begins a script that calls the configured release as rke2.
func (c Config) found() string {
	if c.Release == "" {
		return ""
	}
	return `PATH="$R/usr/local/lib/rke2/` + c.Release + `/bin:/usr/local/lib/rke2/` + c.Release + `/bin:$PATH"; `
}

// setting is a line of config.yaml.
type setting struct {
	key   string
	value any
}

// ConfigFile is a member's config.yaml. Values are in JSON, which YAML includes. What is secret lies in files of its
// own.
func ConfigFile(config Config, member adapter.Member, join string) adapter.WriteFile {
	keys := []setting{{"node-name", Name(member)}, {"node-ip", member.Host()}}
	if labels := nodeLabels(member); len(labels) > 0 {
		keys = append(keys, setting{"node-label", labels})
	}
	if member.ComponentKey == Server {
		keys = append(keys, serverSettings(config, member)...)
	}
	if join != "" {
		keys = append(keys, setting{"server", "https://" + join + ":9345"})
	}
	var text strings.Builder
	for _, one := range keys {
		value, _ := json.Marshal(one.value) // text and numbers always encode
		fmt.Fprintf(&text, "%s: %s\n", one.key, value)
	}
	return adapter.WriteFile{Path: ConfigPath, Mode: "0600", Content: text.String(), MakeDirs: true}
}

// serverSettings are the settings of servers alone. All servers must have the same, or RKE2 refuses to start one.
func serverSettings(config Config, member adapter.Member) []setting {
	keys := []setting{{"bind-address", member.Host()}, {"advertise-address", member.Host()}, {"tls-san", member.Host()},
		{"write-kubeconfig-mode", "0600"}}
	for _, one := range [][2]string{
		{"cni", config.CNI}, {"cluster-cidr", config.ClusterCIDR}, {"service-cidr", config.ServiceCIDR},
		{"etcd-snapshot-schedule-cron", config.SnapshotSchedule},
	} {
		if one[1] != "" {
			keys = append(keys, setting{one[0], one[1]})
		}
	}
	if config.SnapshotsKept > 0 {
		keys = append(keys, setting{"etcd-snapshot-retention", config.SnapshotsKept})
	}
	return keys
}

// program is the part of a script that calls RKE2 in the member's role, with its files.
func program(member adapter.Member, config Config) string {
	script := config.found() + `exec rke2 ` + member.ComponentKey + ` --config "$R` + ConfigPath + `" --data-dir "$R` +
		DataPath + `" --token-file "$R` + TokenPath + `"`
	if member.ComponentKey == Server {
		script += ` --agent-token-file "$R` + AgentTokenPath + `" --write-kubeconfig "$R` + KubeconfigPath + `"`
	}
	return script
}

// Start starts RKE2. It stays in the foreground, so that the node's agent supervises it.
func Start(member adapter.Member, config Config) adapter.StartProcess {
	return adapter.StartProcess{
		Name: Process, Command: Shell(program(member, config)), StopTimeoutSeconds: 30,
		Restart: adapter.Restart{Policy: "always", MaxRestarts: 1000, BackoffSeconds: 5},
	}
}

// Fetches are what of the release the manifest brings onto a node: the program, and its images, which RKE2 imports when
// it starts, so that nothing is pulled. The node's agent fetches them with credentials of minutes.
func Fetches(instance adapter.Instance, config Config) (list []adapter.FetchArtifact) {
	if pinned, ok := instance.Artifact(programArtifact); ok {
		list = append(list, adapter.FetchArtifact{Digest: pinned.Digest, Path: config.ProgramPath(), As: adapter.AsFile,
			Mode: "0755"})
	}
	if pinned, ok := instance.Artifact(imagesArtifact); ok {
		name := cmp.Or(config.Release, "rke2") + ".images.tar"
		switch {
		case strings.Contains(pinned.MediaType, "zstd"):
			name += ".zst"
		case strings.Contains(pinned.MediaType, "gzip"):
			name += ".gz"
		}
		list = append(list, adapter.FetchArtifact{Digest: pinned.Digest, Path: DataPath + "/agent/images/" + name,
			As: adapter.AsFile})
	}
	return list
}

// VersionOf asks a node which release the configuration comes to there.
func VersionOf(config Config) adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(config.found() + `exec rke2 --version`)}
}
