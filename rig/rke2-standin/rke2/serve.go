package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// serve runs a server or an agent until the context ends. Static pods outlive it, as RKE2's do: rke2-killall.sh ends them.
func serve(ctx context.Context, s settings) error {
	if err := nodePassword(); err != nil {
		return err
	}
	if err := s.programs(); err != nil {
		return err
	}
	if !s.server() {
		return s.runAgent(ctx, s.value("server", ""), nil)
	}
	_ = os.Remove(s.resetFlag()) // there is one after a reset alone
	cluster, state, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	name, err := s.etcdName()
	if err != nil {
		return err
	}
	if cluster == "" {
		cluster = name + "=https://" + s.nodeIP() + ":2380"
	}
	if !exists(s.etcdDir() + "/member") {
		if err := s.etcdConfig(name, cluster, state); err != nil {
			return err
		}
	}
	if err := equip(s, serviceAddress(s.critical()["service-cidr"])); err != nil {
		return err
	}
	if err := s.kubeconfigs(); err != nil {
		return err
	}
	api, err := newAPI("https://"+net.JoinHostPort(s.listens(), apiPort), s.path("server/tls/server-ca.crt"),
		s.path("server/tls/client-supervisor"))
	if err != nil {
		return err
	}
	here := &supervisor{settings: s, api: api}
	if err := here.serve(ctx); err != nil {
		return err
	}
	return s.runAgent(ctx, "https://"+net.JoinHostPort(s.listens(), supervisorPort), here)
}

// prepare gives a server what all servers of its cluster have in common: from its own disk, by founding a cluster, or
// from a server that serves. It returns the members of etcd that it starts with, and whether etcd is new or exists.
func (s settings) prepare(ctx context.Context) (cluster, state string, err error) {
	tls := s.path("server/tls")
	if exists(s.etcdDir()+"/member") && exists(tls+"/server-ca.key") {
		return "", "existing", s.tokens()
	}
	base := s.value("server", "")
	if base == "" {
		if !exists(tls + "/server-ca.key") {
			if err := found(tls); err != nil {
				return "", "", err
			}
		}
		return "", "new", s.tokens()
	}
	var j *joiner
	err = s.joined(ctx, base, func(ctx context.Context) (err error) {
		if j, err = s.dial(ctx, base, s.secret("token")); err != nil {
			return err
		}
		if err := s.agrees(ctx, j); err != nil {
			return err
		}
		raw, err := j.do(ctx, http.MethodGet, "/v1-rke2/server-bootstrap", nil, nil)
		if err != nil {
			return err
		}
		files := map[string][]byte{}
		if err := json.Unmarshal(raw, &files); err != nil {
			return err
		}
		for _, name := range shared() {
			if err := write(tls+"/"+name, files[name], 0o600); err != nil {
				return err
			}
		}
		_, err = j.do(ctx, http.MethodGet, "/v1-rke2/readyz", nil, nil)
		return err
	})
	if err != nil {
		return "", "", err
	}
	if err := equip(s, serviceAddress(s.critical()["service-cidr"])); err != nil {
		return "", "", err
	}
	name, err := s.etcdName()
	if err != nil {
		return "", "", err
	}
	by, _, _ := strings.Cut(strings.TrimPrefix(base, "https://"), ":")
	cluster, err = s.admit(ctx, by, name)
	return cluster, "existing", errors.Join(err, s.tokens())
}

// joined tries until a server answers; one that refuses is not asked again.
func (s settings) joined(ctx context.Context, base string, try func(context.Context) error) error {
	var refused error
	err := until(ctx, base, func(ctx context.Context) error {
		err := try(ctx)
		if errors.As(err, new(fatal)) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// agrees holds what servers must have in common to what the others have.
func (s settings) agrees(ctx context.Context, j *joiner) error {
	raw, err := j.do(ctx, http.MethodGet, "/v1-rke2/config", nil, nil)
	if err != nil {
		return err
	}
	theirs := map[string]string{}
	if err := json.Unmarshal(raw, &theirs); err != nil {
		return err
	}
	for key, own := range s.critical() {
		if theirs[key] != own {
			return fatal{fmt.Errorf("critical configuration value mismatch between servers: %s", key)}
		}
	}
	return nil
}

// tokens writes the tokens in full, where RKE2 has them.
func (s settings) tokens() error {
	ca, err := os.ReadFile(s.path("server/tls/server-ca.crt"))
	if err != nil {
		return err
	}
	_, _, servers := splitToken(s.secret("token"))
	_, _, agents := splitToken(s.secret("agent-token"))
	if agents == "" {
		agents = servers
	}
	if servers == "" {
		return errors.New("the stand-in needs --token or --token-file")
	}
	head := "K10" + digest(string(ca)) + "::"
	for path, token := range map[string]string{"server/token": "server:" + servers,
		"server/node-token": "server:" + servers, "server/agent-token": "node:" + agents} {
		if err := write(s.path(path), []byte(head+token+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// token is "rke2 token": of its commands list alone, of the tokens that are files.
func token(args []string) error {
	if len(args) == 0 || args[0] != "list" {
		return errors.New("token: the stand-in has the command list alone")
	}
	flags, err := parse(args[1:])
	if err != nil {
		return err
	}
	s := settings{role: "server", values: flags}
	for _, path := range []string{"server/token", "server/agent-token"} {
		if exists(s.path(path)) {
			fmt.Println(s.path(path))
		}
	}
	return nil
}

// programs links the programs of the bundle to where RKE2 has them.
func (s settings) programs() error {
	if err := os.MkdirAll(s.path("bin"), 0o755); err != nil {
		return err
	}
	for name, of := range map[string]string{"kubectl": "kube", "kubelet": "kube", "containerd": "containerd",
		"containerd-shim-runc-v2": "containerd-shim-runc-v2", "ctr": "ctr"} {
		path := s.path("bin", name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Symlink(program(of), path); err != nil {
			return err
		}
	}
	return nil
}

// serviceAddress is the first address of services, which the API server takes for itself.
func serviceAddress(block string) string {
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return "10.43.0.1"
	}
	return prefix.Masked().Addr().Next().String()
}

// kubeconfig is a kubeconfig with the files that it names; server is where the API answers.
func kubeconfig(server, ca, pair string) ([]byte, error) {
	read := func(path string) []byte {
		raw, _ := os.ReadFile(path) // one that is not there gives a kubeconfig that does not work, and says so
		return raw
	}
	return json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []any{map[string]any{"name": "default", "cluster": map[string]any{"server": server,
			"certificate-authority-data": read(ca)}}},
		"users": []any{map[string]any{"name": "default", "user": map[string]any{
			"client-certificate-data": read(pair + ".crt"), "client-key-data": read(pair + ".key")}}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{"cluster": "default",
			"user": "default"}}},
	}, "", "  ")
}

// kubeconfigs writes those of a server's own programs, and the administrator's.
func (s settings) kubeconfigs() error {
	tls, at := s.path("server/tls"), "https://"+net.JoinHostPort(s.listens(), apiPort)
	for path, pair := range map[string]string{
		s.path("server/cred/controller.kubeconfig"):    "client-controller",
		s.path("server/cred/scheduler.kubeconfig"):     "client-scheduler",
		s.path("server/cred/admin.kubeconfig"):         "client-admin",
		s.value("write-kubeconfig", defaultKubeconfig): "client-admin",
	} {
		raw, err := kubeconfig(at, tls+"/server-ca.crt", tls+"/"+pair)
		if err != nil {
			return err
		}
		if err := write(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}
