package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"
)

// Where RKE2 has its things.
const (
	defaultConfig     = "/etc/rancher/rke2/config.yaml"
	defaultData       = "/var/lib/rancher/rke2"
	defaultKubeconfig = "/etc/rancher/rke2/rke2.yaml"
	nodePasswordPath  = "/etc/rancher/node/password"
	supervisorPort    = "9345"
	apiPort           = "6443"
	proxyPort         = "6444"
)

// known are the keys that a config file and the flags may have; those whose value is true are for servers alone.
var known = map[string]bool{
	"config": false, "data-dir": false, "token": false, "token-file": false, "server": false, "node-name": false,
	"node-ip": false, "node-label": false, "node-taint": false, "private-registry": false, "kubelet-arg": false,
	"debug": false, "snapshotter": false, "profile": false, "selinux": false, "pause-image": false,
	"resolv-conf": false, "system-default-registry": false,
	"agent-token": true, "agent-token-file": true, "tls-san": true, "bind-address": true, "advertise-address": true,
	"write-kubeconfig": true, "write-kubeconfig-mode": true, "write-kubeconfig-group": true, "cluster-cidr": true,
	"service-cidr": true, "cluster-dns": true, "cluster-domain": true, "cni": true, "disable": true,
	"cluster-init": true, "cluster-reset": true, "cluster-reset-restore-path": true, "disable-cloud-controller": true,
	"disable-kube-proxy": true, "egress-selector-mode": true, "kube-apiserver-arg": true, "kube-scheduler-arg": true,
	"kube-controller-manager-arg": true, "etcd-arg": true, "etcd-snapshot-schedule-cron": true,
	"etcd-snapshot-retention": true, "etcd-snapshot-dir": true, "etcd-snapshot-name": true,
	"etcd-disable-snapshots": true, "etcd-expose-metrics": true, "etcd-snapshot-compress": true,
	"ingress-controller": true, "secrets-encryption": true,
}

// switches are the keys whose flag needs no value.
var switches = []string{"debug", "cluster-init", "cluster-reset", "disable-cloud-controller", "disable-kube-proxy",
	"etcd-disable-snapshots", "etcd-expose-metrics", "etcd-snapshot-compress", "selinux", "secrets-encryption"}

// settings are what a server or an agent runs with: the config files' values, and over them those of the flags.
type settings struct {
	role   string
	values map[string][]string
}

// read reads flags, environment and config files, in RKE2's order: the flags win.
func read(role string, args []string) (settings, error) {
	s := settings{role: role, values: map[string][]string{}}
	flags, err := parse(args)
	if err != nil {
		return s, err
	}
	file := defaultConfig
	if at := os.Getenv("RKE2_CONFIG_FILE"); at != "" {
		file = at
	}
	if given := flags["config"]; len(given) > 0 {
		file = given[0]
	}
	if err := s.files(file); err != nil {
		return s, err
	}
	for key, name := range map[string]string{"token": "RKE2_TOKEN", "token-file": "RKE2_TOKEN_FILE",
		"server": "RKE2_URL", "data-dir": "RKE2_DATA_DIR", "node-name": "RKE2_NODE_NAME"} {
		if value := os.Getenv(name); value != "" {
			s.values[key] = []string{value}
		}
	}
	for key, values := range flags {
		s.values[key] = values
	}
	for key := range s.values {
		ofServers, ok := known[key]
		if !ok || ofServers && role == "agent" {
			fmt.Fprintf(os.Stderr, "Unknown flag --%s found in config.yaml, skipping\n", key)
		}
	}
	if s.values["node-ip"] == nil {
		return s, errors.New("node-ip is not set: the stand-in does not guess it")
	}
	if _, err := netip.ParseAddr(s.value("node-ip", "")); err != nil {
		return s, fmt.Errorf("node-ip: %w", err)
	}
	if s.role == "agent" && (s.value("server", "") == "" || s.secret("token") == "") {
		return s, errors.New("--token and --server are required")
	}
	return s, nil
}

// parse reads flags as --key=value, --key value and, for switches, --key.
func parse(args []string) (map[string][]string, error) {
	flags := map[string][]string{}
	for i := 0; i < len(args); i++ {
		key, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return nil, fmt.Errorf("unexpected argument %q", args[i])
		case slices.Contains(switches, key) && !joined:
			value = "true"
		case !joined && i+1 < len(args):
			i++
			value = args[i]
		case !joined:
			return nil, fmt.Errorf("flag needs an argument: --%s", key)
		}
		if _, ok := known[key]; !ok {
			return nil, fmt.Errorf("flag provided but not defined: --%s", key)
		}
		flags[key] = append(flags[key], value)
	}
	return flags, nil
}

// files reads the config file and those in the folder beside it, by the alphabet: the last one wins, and a key that
// ends with + adds.
func (s settings) files(path string) error {
	more, err := filepath.Glob(path + ".d/*.yaml")
	if err != nil {
		return err
	}
	sort.Strings(more)
	for _, file := range append([]string{path}, more...) {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		document := map[string]any{}
		if err := yaml.Unmarshal(raw, &document); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for key, value := range document {
			name, adds := strings.CutSuffix(key, "+")
			if !adds {
				s.values[name] = nil
			}
			list, many := value.([]any)
			if !many {
				list = []any{value}
			}
			for _, one := range list {
				s.values[name] = append(s.values[name], fmt.Sprint(one))
			}
		}
	}
	return nil
}

func (s settings) value(key, otherwise string) string {
	if list := s.values[key]; len(list) > 0 && list[len(list)-1] != "" {
		return list[len(list)-1]
	}
	return otherwise
}

func (s settings) flag(key string) bool { return s.value(key, "") == "true" }

// secret is a value that may be in a file of its own.
func (s settings) secret(key string) string {
	if value := s.value(key, ""); value != "" {
		return value
	}
	raw, err := os.ReadFile(s.value(key+"-file", "/nonexistent"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func (s settings) server() bool { return s.role == "server" }

// path is below the data folder.
func (s settings) path(parts ...string) string {
	return filepath.Join(append([]string{s.value("data-dir", defaultData)}, parts...)...)
}

func (s settings) nodeName() string {
	host, _ := os.Hostname()
	return strings.ToLower(s.value("node-name", host))
}

func (s settings) nodeIP() string { return s.value("node-ip", "") }

// listens is the address of a server's ports.
func (s settings) listens() string { return s.value("bind-address", s.nodeIP()) }

// critical are the settings that all servers of a cluster must have in common.
func (s settings) critical() map[string]string {
	return map[string]string{
		"cluster-cidr":   s.value("cluster-cidr", "10.42.0.0/16"),
		"service-cidr":   s.value("service-cidr", "10.43.0.0/16"),
		"cluster-domain": s.value("cluster-domain", "cluster.local"),
		"agent-token":    digest(s.secret("agent-token")),
	}
}

// program is the path of a program of the bundle, which lies beside this one's folder.
func program(name string) string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return filepath.Join(filepath.Dir(filepath.Dir(self)), "libexec", name)
}
