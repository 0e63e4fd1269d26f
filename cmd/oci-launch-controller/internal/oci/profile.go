package oci

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Profile is the runtime profile of a launchable manifest.
type Profile struct {
	// Image is the name of the artifact that is run.
	Image string `json:"image"`
	// Command replaces the image's own entry point, and with it its arguments; empty keeps them.
	Command []string `json:"command"`
	// Args replace the image's own arguments; nil keeps them.
	Args []string `json:"args"`
	// Env is added to the image's own.
	Env map[string]string `json:"env"`
	// Ports are where it listens.
	Ports []Port `json:"ports"`
	// Resources bound it, where the node can.
	Resources Resources `json:"resources"`
	// Restart is what happens when it ends.
	Restart Restart `json:"restart"`
	// Health is when it is well; nil as long as it runs.
	Health *Health `json:"health"`
	// Usage is where it counts what it serves; nil counts nothing.
	Usage *Usage `json:"usage"`
	// ReadOnly makes its root file system read-only.
	ReadOnly bool `json:"readOnly"`
	// Volumes are its member's volumes, folders of the member's own, or artifacts.
	Volumes []Volume `json:"volumes"`
}

// Port is a port the container wants.
type Port struct {
	// Name makes PORT_<NAME>, the port it got.
	Name string `json:"name"`
	// Port is the one it wants, 1 to 65,535.
	Port int `json:"port"`
}

// Resources are the bounds of one container; 0 means no bound.
type Resources struct {
	// CPUs is how many processors it may use, parts of one too.
	CPUs float64 `json:"cpus"`
	// MemoryMiB is how much memory it may use, in MiB; beyond it is killed.
	MemoryMiB int `json:"memoryMiB"`
	// GPUs is how many its member must have.
	GPUs int `json:"gpus"`
}

// Restart says when a container that ended is started again.
type Restart struct {
	// Policy is "never", "on-failure" or "always"; empty is "on-failure".
	Policy string `json:"policy"`
	// MaxRestarts bounds how often; 0 means no bound.
	MaxRestarts int `json:"maxRestarts"`
}

// Health is a check that passes when the container is well: one of HTTP and Exec.
type Health struct {
	HTTP *HTTPCheck `json:"http"`
	Exec *ExecCheck `json:"exec"`
	// Attempts is how often at most until it is well; 0 is 60.
	Attempts int `json:"attempts"`
	// IntervalSeconds is the pause between two; 0 is 1.
	IntervalSeconds int `json:"intervalSeconds"`
	// TimeoutSeconds bounds each; 0 is 5.
	TimeoutSeconds int `json:"timeoutSeconds"`
}

// HTTPCheck passes when a GET is answered as expected.
type HTTPCheck struct {
	// Port is one of the profile's; where the member got another in its place, the check calls that one.
	Port int `json:"port"`
	// Path begins with a slash.
	Path string `json:"path"`
	// ExpectStatus is 0 for any of 200 to 399.
	ExpectStatus int `json:"expectStatus"`
}

// ExecCheck passes when a command in the container exits with 0.
type ExecCheck struct {
	Command []string `json:"command"`
}

// Usage is where a container counts what it serves.
type Usage struct {
	// Port is one of the profile's; where it got another, that one is read.
	Port int `json:"port"`
	// Path begins with a slash, and answers metrics in the text format of Prometheus.
	Path string `json:"path"`
	// Counters are the metrics that count usage.
	Counters []Counter `json:"counters"`
}

// Counter is a metric that only grows while its container runs. Its series are added up.
type Counter struct {
	Metric string `json:"metric"`
	// Dimension is one of the manifest's usage dimensions.
	Dimension string `json:"dimension"`
}

// Volume is a folder in the container.
type Volume struct {
	// Name identifies it within the profile.
	Name string `json:"name"`
	// Path is where it is in the container.
	Path string `json:"path"`
	// Artifact is whose files it holds; empty for a folder that is the member's own and empty at first.
	Artifact string `json:"artifact"`
	// Slot is whose volume it is where the instance has one; empty for none.
	Slot string `json:"slot"`
	// ReadOnly keeps the container from writing to it.
	ReadOnly bool `json:"readOnly"`
}

// Config is what the owner of an instance may choose, as far as the manifest's config schema lets them.
type Config struct {
	// Env is laid over the profile's.
	Env map[string]string `json:"env"`
	// Args replace the profile's; nil keeps them.
	Args []string `json:"args"`
	// Restart replaces the profile's; nil keeps it.
	Restart *Restart `json:"restart"`
}

// refusal is a fault of what is to be run, with the field of the instance where it lies.
func refusal(code, field, format string, args ...any) error {
	return adapter.Reject(code, "instance."+field, format, args...)
}

// profileOf reads what an instance runs: its manifest's profile with its own choices laid over it.
func profileOf(instance adapter.Instance) (Profile, error) {
	var p Profile
	if len(instance.RuntimeProfile) == 0 {
		return p, refusal("RUNTIME_PROFILE_MISSING", "runtimeProfile", "the manifest does not say what to run")
	}
	if err := json.Unmarshal(instance.RuntimeProfile, &p); err != nil {
		return p, refusal("RUNTIME_PROFILE_INVALID", "runtimeProfile", "cannot be read: %v", err)
	}
	var config Config
	if len(instance.Config) > 0 {
		if err := json.Unmarshal(instance.Config, &config); err != nil {
			return p, refusal(adapter.CodeConfigInvalid, "config", "cannot be read: %v", err)
		}
	}
	env := maps.Clone(p.Env)
	if env == nil {
		env = make(map[string]string)
	}
	maps.Copy(env, config.Env)
	p.Env = env
	if config.Args != nil {
		p.Args = config.Args
	}
	if config.Restart != nil {
		p.Restart = *config.Restart
	}
	return p, p.check(instance)
}

// check refuses a profile that could not run, whatever the node.
func (p Profile) check(instance adapter.Instance) error {
	if _, ok := instance.Artifact(p.Image); !ok {
		return refusal("IMAGE_MISSING", "runtimeProfile.image", "the manifest pins no artifact %q", p.Image)
	}
	for i, volume := range p.Volumes {
		if _, ok := instance.Artifact(volume.Artifact); volume.Artifact != "" && !ok {
			return refusal("ARTIFACT_MISSING", fmt.Sprintf("runtimeProfile.volumes[%d].artifact", i),
				"the manifest pins no artifact %q", volume.Artifact)
		}
		if !path.IsAbs(volume.Path) || strings.ContainsAny(volume.Path, ":,") {
			return refusal("RUNTIME_PROFILE_INVALID", fmt.Sprintf("runtimeProfile.volumes[%d].path", i),
				"must be absolute and without : and ,")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if strings.ContainsAny(p.Env[name], "\n\r\x00") {
			return refusal("ENV_INVALID", "runtimeProfile.env."+name, "must be one line of text")
		}
	}
	if !slices.Contains([]string{"", "never", "on-failure", "always"}, p.Restart.Policy) {
		return refusal("RESTART_INVALID", "runtimeProfile.restart.policy", "%q is not never, on-failure or always",
			p.Restart.Policy)
	}
	if h := p.Health; h != nil && h.HTTP != nil && !p.has(h.HTTP.Port) {
		return refusal("RUNTIME_PROFILE_INVALID", "runtimeProfile.health.http.port", "%d is not one of the ports",
			h.HTTP.Port)
	}
	if u := p.Usage; u != nil && !p.has(u.Port) {
		return refusal("RUNTIME_PROFILE_INVALID", "runtimeProfile.usage.port", "%d is not one of the ports", u.Port)
	}
	return nil
}

// has reports whether a port is one of the profile's.
func (p Profile) has(number int) bool {
	return slices.ContainsFunc(p.Ports, func(port Port) bool { return port.Port == number })
}

// expand replaces $(NAME) by the value of a known name; $$(NAME) is $(NAME) itself, and an unknown name stays.
func expand(text string, known map[string]string) string {
	var out strings.Builder
	for {
		at := strings.Index(text, "$(")
		if at < 0 {
			return out.String() + text
		}
		name, rest, closed := strings.Cut(text[at+2:], ")")
		value, ok := known[name]
		switch {
		case !closed:
			return out.String() + text
		case at > 0 && text[at-1] == '$':
			out.WriteString(text[:at-1] + "$(" + name + ")")
		case ok:
			out.WriteString(text[:at] + value)
		default:
			out.WriteString(text[:at] + "$(" + name + ")")
		}
		text = rest
	}
}

func expandAll(list []string, known map[string]string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = expand(text, known)
	}
	return out
}
