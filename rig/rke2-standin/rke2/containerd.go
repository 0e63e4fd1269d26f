package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// runDir is where containerd has its state and its socket, as with RKE2.
const runDir = "/run/k3s/containerd"

// Images of the bundle: the program that holds a pod's namespaces, and an empty root for the static pods, whose program
// is mounted into it.
const (
	pauseImage = "docker.io/rancher/rke2-standin-pause:1"
	coreImage  = "docker.io/rancher/rke2-standin-core:1"
)

// containers starts containerd and imports the images that lie on the node.
func (s settings) containers(ctx context.Context) error {
	config := s.path("agent/etc/containerd/config.toml")
	runtime, err := exec.LookPath("runc") // crun of Debian 12 is too old for this containerd
	if err != nil {
		return err
	}
	if err := s.registries(); err != nil {
		return err
	}
	text := fmt.Sprintf(`version = 3
root = %q
state = %q
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  device_ownership_from_security_context = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%q]
    conf_dir = %q
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %q
      SystemdCgroup = false
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %q
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = %q
`, s.path("agent/containerd"), runDir, runDir+"/containerd.sock", program("cni"), cniDir, runtime, pauseImage,
		s.path("agent/etc/containerd/certs.d"))
	if err := write(config, []byte(text), 0o600); err != nil {
		return err
	}
	err = keep(ctx, "containerd", s.path("agent/containerd/containerd.log"),
		[]string{"PATH=" + s.path("bin") + ":" + os.Getenv("PATH")}, program("containerd"),
		"-c", config, "-a", runDir+"/containerd.sock", "--log-level", "warn")
	if err != nil {
		return err
	}
	err = until(ctx, "containerd", func(ctx context.Context) error {
		return exec.CommandContext(ctx, program("ctr"), "-a", runDir+"/containerd.sock", "version").Run()
	})
	if err != nil {
		return err
	}
	for _, dir := range []string{program("images"), s.path("agent/images")} {
		paths, _ := filepath.Glob(dir + "/*.tar")
		for _, path := range paths {
			out, err := exec.CommandContext(ctx, program("ctr"), "-a", runDir+"/containerd.sock",
				"-n", "k8s.io", "images", "import", "--local", path).CombinedOutput()
			if err != nil {
				return fmt.Errorf("import %s: %w: %s", filepath.Base(path), err, strings.TrimSpace(string(out)))
			}
		}
	}
	return nil
}

// registries is RKE2's registries.yaml, as far as it is read here.
type registries struct {
	Mirrors map[string]struct {
		Endpoint []string `json:"endpoint"`
	} `json:"mirrors"`
	Configs map[string]struct {
		Auth struct {
			Username string `json:"username"`
			Password string `json:"password"`
		} `json:"auth"`
	} `json:"configs"`
}

// registries writes containerd's way to each registry from RKE2's registries.yaml, with the credentials there.
func (s settings) registries() error {
	raw, err := os.ReadFile(s.value("private-registry", "/etc/rancher/rke2/registries.yaml"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var config registries
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("registries.yaml: %w", err)
	}
	for host, mirror := range config.Mirrors {
		var text strings.Builder
		for _, endpoint := range mirror.Endpoint {
			fmt.Fprintf(&text, "[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", endpoint)
			at, err := url.Parse(endpoint)
			if err != nil {
				return fmt.Errorf("registries.yaml: endpoint: %w", err)
			}
			auth := config.Configs[at.Host].Auth
			if auth.Username != "" {
				basic := base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + auth.Password))
				fmt.Fprintf(&text, "  [host.%q.header]\n    authorization = %q\n", endpoint, "Basic "+basic)
			}
		}
		if err := write(s.path("agent/etc/containerd/certs.d", host, "hosts.toml"), []byte(text.String()),
			0o600); err != nil {
			return err
		}
	}
	return nil
}
