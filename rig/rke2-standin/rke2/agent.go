package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// runAgent runs a node: its containerd, its kubelet, its way to the API servers and its network. Here is the supervisor
// of this very node, where it is a server.
func (s settings) runAgent(ctx context.Context, base string, here *supervisor) error {
	if err := s.credentials(ctx, base, here != nil); err != nil {
		return err
	}
	first := []string{}
	if here != nil {
		first = []string{net.JoinHostPort(s.listens(), apiPort)}
	}
	proxy := &balancer{settings: s, first: first, base: base}
	if err := proxy.serve(ctx); err != nil {
		return err
	}
	if err := s.containers(ctx); err != nil {
		return err
	}
	if here != nil {
		if err := s.staticPods(); err != nil {
			return err
		}
	}
	if err := s.kubelet(ctx); err != nil {
		return err
	}
	api, err := s.toAPI()
	if err != nil {
		return err
	}
	if here != nil {
		if err := s.core(ctx, here); err != nil {
			return err
		}
	}
	go routes(ctx, s, api)
	if err := until(ctx, "node "+s.nodeName(), func(ctx context.Context) error {
		_, err := api.do(ctx, http.MethodGet, "/api/v1/nodes/"+s.nodeName(), nil)
		return err
	}); err != nil {
		return stopped(ctx, err)
	}
	fmt.Fprintf(os.Stderr, "rke2 %s is up and running\n", s.role)
	notify()
	<-ctx.Done()
	time.Sleep(time.Second) // the children are given a moment to end
	return nil
}

// controllerUser is whom RKE2's own loops on a node act as: it sees all Nodes and where API servers are.
const controllerUser = "system:rke2-controller"

// toAPI calls whichever API server answers, as this node's own loops.
func (s settings) toAPI() (apiClient, error) {
	return newAPI("https://127.0.0.1:"+proxyPort, s.path("agent/server-ca.crt"), s.path("agent/client-rke2-controller"))
}

// stopped is nil when what failed was only told to stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// credentials has the supervisor sign what the kubelet shows to others. A node that was up before has them already.
func (s settings) credentials(ctx context.Context, base string, server bool) error {
	kept := exists(s.path("agent/client-rke2-controller.crt"))
	token := s.secret("token")
	if server {
		if raw, err := os.ReadFile(s.path("server/token")); err == nil {
			token = string(raw[:len(raw)-1])
		}
	}
	join := func(ctx context.Context) error {
		j, err := s.dial(ctx, base, token)
		if err != nil {
			return err
		}
		raw, err := j.do(ctx, http.MethodGet, "/v1-rke2/client-ca.crt", nil, nil)
		if err != nil {
			return err
		}
		if err := write(s.path("agent/client-ca.crt"), raw, 0o644); err != nil {
			return err
		}
		for _, kind := range []string{"client-kubelet", "serving-kubelet", "client-rke2-controller"} {
			if err := j.signed(ctx, s, kind); err != nil {
				return err
			}
		}
		return nil
	}
	if kept && !server {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := join(bounded); errors.As(err, new(fatal)) {
			return err
		}
		return nil // the server that it joined by may have left: others know it
	}
	return s.joined(ctx, base, join)
}

// core waits until a server's own etcd votes and its API serves, and makes what a cluster needs of objects.
func (s settings) core(ctx context.Context, here *supervisor) error {
	if err := s.promote(ctx); err != nil {
		return stopped(ctx, err)
	}
	err := until(ctx, "the API server", func(ctx context.Context) error {
		_, err := here.api.do(ctx, http.MethodGet, "/readyz", nil)
		return err
	})
	if err != nil {
		return stopped(ctx, err)
	}
	password, err := os.ReadFile(nodePasswordPath)
	if err != nil {
		return err
	}
	var rejected error
	err = until(ctx, "the node's password", func(ctx context.Context) error {
		rejected = here.api.vouch(ctx, s.nodeName(), string(password))
		if rejected != nil && errors.As(rejected, new(status)) {
			return rejected
		}
		return nil
	})
	if err = errors.Join(err, rejected); err != nil {
		return stopped(ctx, err)
	}
	here.ready.Store(true)
	go s.roles(ctx, here.api)
	return nil
}

// roles gives RKE2's own loops their right, and this server's Node the labels that a kubelet may not give itself.
func (s settings) roles(ctx context.Context, api apiClient) {
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	meta := map[string]string{"name": controllerUser}
	for path, object := range map[string]map[string]any{
		"clusterroles": {"metadata": meta, "rules": []any{
			map[string]any{"apiGroups": []string{""}, "resources": []string{"nodes", "endpoints"},
				"verbs": []string{"get", "list", "watch"}},
		}},
		"clusterrolebindings": {"metadata": meta,
			"roleRef": map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
				"name": controllerUser},
			"subjects": []any{map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
				"name": controllerUser}}},
	} {
		_ = until(ctx, path, func(ctx context.Context) error {
			_, err := api.do(ctx, http.MethodPost, group+path, object)
			if already(err) {
				return nil
			}
			return err
		})
	}
	_ = until(ctx, "the Node of this server", func(ctx context.Context) error {
		_, err := api.do(ctx, http.MethodPatch, "/api/v1/nodes/"+s.nodeName(), map[string]any{
			"metadata": map[string]any{"labels": map[string]string{
				"node-role.kubernetes.io/control-plane": "true", "node-role.kubernetes.io/etcd": "true",
			}}})
		return err
	})
}

// balancer takes the connections of this node's programs to whichever API server answers.
type balancer struct {
	settings

	first []string
	base  string
}

// maxConnections bounds how many connections it carries at once.
const maxConnections = 512

func (b *balancer) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:"+proxyPort)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = listener.Close()
	}()
	go b.learn(ctx)
	slots := make(chan struct{}, maxConnections)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			slots <- struct{}{}
			go func() {
				defer func() { <-slots }()
				b.carry(ctx, conn)
			}()
		}
	}()
	return nil
}

func (b *balancer) file() string { return b.path("agent/etc/rke2-api-server-agent-load-balancer.json") }

// known are the API servers, this node's own first.
func (b *balancer) known() []string {
	list := append([]string{}, b.first...)
	raw, err := os.ReadFile(b.file())
	var kept []string
	if err == nil && json.Unmarshal(raw, &kept) == nil {
		list = append(list, kept...)
	}
	if host, _, err := net.SplitHostPort(filepath.Base(b.base)); err == nil {
		list = append(list, net.JoinHostPort(host, apiPort))
	}
	return list
}

func (b *balancer) carry(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	dialer := net.Dialer{Timeout: 2 * time.Second}
	for _, address := range b.known() {
		other, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		splice(conn, other)
		return
	}
}

// learn keeps the list of API servers, which outlives the server that this node has joined by.
func (b *balancer) learn(ctx context.Context) {
	for wait(ctx, 2*time.Second) {
		api, err := b.toAPI()
		if err != nil {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		list := api.servers(bounded)
		cancel()
		api.client.CloseIdleConnections()
		if len(list) == 0 {
			continue
		}
		raw, _ := json.Marshal(list) // strings always encode
		if kept, _ := os.ReadFile(b.file()); string(kept) != string(raw) {
			_ = write(b.file(), raw, 0o600) // the next round tries again
		}
	}
}
