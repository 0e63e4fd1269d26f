// Package stack brings a whole local installation up: the base of rig/install, and on it the platform's own programs,
// the reference controllers, local nodes with their agents, and a demo tenant with a catalog, all of it seeded through
// the public API. `make run` and the end-to-end tests run on it.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/install"
	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// Config describes an installation.
type Config struct {
	// Dir keeps everything; Bin holds the built programs. Both are required.
	Dir, Bin string
	// Listen is the API's address on this machine, such as 127.0.0.1:8080.
	Listen string
	// DatabaseURL is a superuser's URL of a server to use instead of an embedded one.
	DatabaseURL string
	// Servers is how many server processes share the database; 0 is one. Those beyond the first listen on addresses
	// of their own.
	Servers int
	// Roles are what each server does, by number: "api", "worker" or "api,worker", also with "billing". Those left out
	// do all; those also in Programs do no billing. The first always serves the API: nodes need it.
	Roles []string
	// ServerFlags are further flags of every server, and AgentFlags of every local node's agent.
	ServerFlags, AgentFlags []string
	// Programs are the paths of what each server runs, by number; those left out run the one in Bin.
	Programs []string
	// Nodes is how many local nodes; without namespaces there is one.
	Nodes int
	// NodeGPUs is how many simulated GPUs each local node declares; 0 is 4.
	NodeGPUs int
	// NodeMemoryMiB is the memory that each local node declares, in MiB; 0 is all of this machine's.
	NodeMemoryMiB int
	// WholeNodes is how many further nodes are for apps that take a whole machine: their members are plain processes,
	// as root of the node, and none of another tenant's is ever beside them. Their SKU is WholeSKU.
	WholeNodes int
	// Kubernetes is the folder of the compiled stand-in of RKE2, which whole nodes see at /opt/rke2.
	Kubernetes string
	// Plain makes the local node without namespaces, also as root.
	Plain bool
	// Throwaway is for tests: the database need not survive a crash.
	Throwaway bool
	// DemoPrices fills an empty price book for a demonstration, so that plans show money.
	DemoPrices bool
	// Apps are the reference apps to publish, by name of their controller's folder under cmd.
	Apps []App
	// Registries are further registries and file servers, host:port, that artifacts may come from, reached without TLS.
	Registries []string
	// Webhooks are where webhooks may be sent on this machine, such as 127.0.0.1:9000.
	Webhooks []string
	// Traces receives what all programs send by OTLP over HTTP; nil leaves telemetry off.
	Traces http.Handler
	// Out takes what a person should read; nil drops it.
	Out io.Writer
}

// Stack is a running installation.
type Stack struct {
	*install.Rig
	config Config
	// URL is the address of API and console.
	URL string
	// Operator is a client with the first operator's session.
	Operator *client.Client
	// Server is the platform's process.
	Server *supervise.Child
	// Others are further server processes, and OtherURLs their addresses.
	Others    []*supervise.Child
	OtherURLs []string
	// APIURLs are the addresses of the servers that serve the API, the first server's first.
	APIURLs []string
	// Controllers are the adapters' processes, by the app that each was started for.
	Controllers map[string]*supervise.Child
	// Nodes are the local nodes with their agents.
	Nodes []*Node
	// Demo is what was seeded.
	Demo Demo

	adapters map[string]string // controller → its URL
	accounts map[string]string // controller → the id of its own service account
	nodeURL  string            // the API's address as nodes reach it
	root     string            // of members, on this machine

	traces, nodeTraces []string // the environment that has programs, and agents, send traces; nil for none
}

// Node is a local node and its agent's process.
type Node struct {
	*install.Node
	Agent *supervise.Child
}

// Up brings everything up and seeds it. What was up already is taken down again when it fails. The
// caller's main (or TestMain) has called lab.MaybeRunInit.
func Up(ctx context.Context, config Config) (_ *Stack, err error) {
	if config.Out == nil {
		config.Out = io.Discard
	}
	s := &Stack{config: config, Controllers: make(map[string]*supervise.Child), adapters: make(map[string]string)}
	if err := s.reserve(ctx); err != nil {
		return nil, err
	}
	if err := s.ground(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"receive traces", func(context.Context) error { return s.serveTraces() }},
		{"start the server", s.startServer}, {"log in the first operator", s.bootstrap},
		{"seed the demo tenant", s.seedTenants}, {"data folder", s.claimFolder},
		{"create accounts for the adapters", s.seedAdapters},
		{"start the controllers", s.startControllers}, {"start the nodes", s.startNodes},
		{"start the other servers", s.StartOthers}, {"seed", s.seed},
	} {
		if err := step.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return s, nil
}

// reserve finds out early whether the API's address can be had, and what people call it. Otherwise
// another installation that listens there would answer in this one's name.
func (s *Stack) reserve(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen address %q: %w", s.config.Listen, err)
	}
	if port == "0" {
		if s.config.Listen, err = loopback.AddressOn(host); err != nil {
			return err
		}
		_, port, _ = net.SplitHostPort(s.config.Listen)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.config.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another program listens on %s; end it, or choose another address, such as make run "+
			"LISTEN=127.0.0.1:18080", s.config.Listen)
	}
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	if at, tcp := listener.Addr().(*net.TCPAddr); tcp && !at.IP.IsLoopback() {
		_ = listener.Close()
		return fmt.Errorf("%s is not a loopback address, and this installation has development logins: "+
			"listen on 127.0.0.1, and reach it from elsewhere by a tunnel, such as ssh -L", s.config.Listen)
	}
	s.URL = "http://" + net.JoinHostPort(host, port)
	return listener.Close()
}

// ground is what needs no program of ours.
func (s *Stack) ground(ctx context.Context) (err error) {
	rooted := os.Geteuid() == 0 && !s.config.Plain
	cfg := install.Config{
		Dir: s.config.Dir, DatabaseURL: s.config.DatabaseURL, Platform: s.URL, Plain: s.config.Plain,
		Throwaway: s.config.Throwaway, Out: s.config.Out,
	}
	var apps []App
	for _, app := range s.config.Apps {
		if app.Rooted && !rooted {
			s.say("%s is left out: it needs nodes with namespaces of their own, and those need root", app.Slug)
			continue
		}
		apps = append(apps, app)
		cfg.Features = append(cfg.Features, app.Features...)
	}
	s.config.Apps = apps
	s.Rig, err = install.Up(ctx, cfg)
	return err
}

func (s *Stack) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.config.Out, format+"\n", args...)
}

func (s *Stack) program(name string) string { return filepath.Join(s.config.Bin, name) }

// LogDir is where every program's output goes.
func (s *Stack) LogDir() string { return filepath.Join(s.config.Dir, "logs") }

// AwaitReady waits until the server answers.
func (s *Stack) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return install.AwaitHTTP(ctx, http.DefaultClient, s.URL+"/readyz")
}

// bootstrap mints the first operator's one-time login and redeems it as any client would.
func (s *Stack) bootstrap(ctx context.Context) error {
	command := exec.CommandContext(ctx, s.program("app-platform"), "bootstrap")
	command.Env = append(os.Environ(), "DATABASE_URL="+s.AdminDSN())
	command.Stderr = os.Stderr
	code, err := command.Output()
	if err != nil {
		return err
	}
	s.Operator, err = s.LogIn(ctx, strings.TrimSpace(string(code)))
	return err
}

// claimFolder ties the data folder to the database that its nodes are enrolled in and its key is of.
// One used with another database (DATABASE_URL set or changed between two runs) is refused.
func (s *Stack) claimFolder(context.Context) error {
	file := filepath.Join(s.config.Dir, "installation")
	kept, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return os.WriteFile(file, []byte(s.Demo.TenantID), 0o644)
	}
	if err == nil && string(kept) != s.Demo.TenantID {
		return fmt.Errorf("%s belongs to another database; choose a folder of its own for this one, such as make run "+
			"DATA=.data-2", s.config.Dir)
	}
	return err
}

// LogIn redeems a one-time login code and answers a client with the session.
func (s *Stack) LogIn(ctx context.Context, code string) (*client.Client, error) {
	anonymous, err := client.New(s.URL, client.Options{})
	if err != nil {
		return nil, err
	}
	session, err := anonymous.Login(ctx, code)
	if err != nil {
		return nil, err
	}
	return client.New(s.URL, client.Options{Token: session.Token})
}

// startControllers starts each adapter as a process of its own, once for all its apps.
func (s *Stack) startControllers(ctx context.Context) error {
	for _, app := range s.config.Apps {
		if _, up := s.adapters[app.Controller]; up {
			continue // it runs another app too
		}
		if err := s.StartController(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

// StartController starts an app's adapter and waits until it answers, at the address of the last
// time if it can.
func (s *Stack) StartController(ctx context.Context, app App) error {
	address, err := s.address(app.Controller)
	if err != nil {
		return err
	}
	child, err := s.Program(supervise.Spec{
		Name: app.Controller, Restart: supervise.OnFailure, Env: s.env(),
		Command: append([]string{
			s.controller(app), "--listen", address, "--name", adapterName(app), "--platform-url", s.URL,
			"--state-dir", filepath.Join(s.config.Dir, "controllers", app.Slug),
		}, s.accountFlags(app)...),
	})
	if err != nil {
		return err
	}
	s.Controllers[app.Slug], s.adapters[app.Controller] = child, "http://"+address
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := install.AwaitHTTP(ctx, http.DefaultClient, "http://"+address+"/healthz"); err != nil {
		return fmt.Errorf("%w; see %s", err, filepath.Join(s.LogDir(), app.Controller+".log"))
	}
	return nil
}

// controller is the program of an app's adapter.
func (s *Stack) controller(app App) string { return cmp.Or(app.Program, s.program(app.Controller)) }

// adapterName is what an app's adapter is registered as; its manifest says the same.
func adapterName(app App) string { return strings.TrimSuffix(app.Controller, "-controller") }

// address is a free port for a program, kept over runs so that its registration stays true.
func (s *Stack) address(program string) (string, error) {
	file := filepath.Join(s.config.Dir, "ports", program)
	if kept, err := os.ReadFile(file); err == nil {
		if listener, err := net.Listen("tcp", string(kept)); err == nil {
			return string(kept), listener.Close()
		}
	}
	address, err := loopback.Address()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return address, os.WriteFile(file, []byte(address), 0o644)
}

func portOf(address net.Addr) string {
	_, port, _ := net.SplitHostPort(address.String())
	return port
}

// agentPath is where the agent's program appears on a node.
const agentPath = "/opt/app-platform/node-agent"

func (s *Stack) agentBind() lab.Bind {
	return lab.Bind{Source: s.program("node-agent"), Target: agentPath, ReadOnly: true}
}

// output runs a program and answers what it printed.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(args, " "), err)
	}
	return printed, nil
}
