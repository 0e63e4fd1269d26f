package install

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/gpuaas/app-platform/internal/filelock"
	"github.com/gpuaas/app-platform/internal/ociregistry"
	"github.com/gpuaas/app-platform/internal/postgres"
	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// ErrInUse is returned by Up for a data folder that another rig holds.
var ErrInUse = errors.New("another process is running on this data folder")

// Config describes an installation.
type Config struct {
	Dir         string // the data folder; made when absent. Required
	DatabaseURL string // a superuser's URL of a server to use instead of an embedded one
	Registry    string // "127.0.0.1:PORT" of the registry; empty: the port of the last time, or a free one
	// the platform's public address: the registry then takes its pull tokens and refuses everybody else. Empty: the
	// registry is open
	Platform  string
	Throwaway bool             // for tests: the database need not survive a crash
	Plain     bool             // local nodes without namespaces even as root
	Features  []prereq.Feature // what the machine needs beyond what the rig itself does
	Out       io.Writer        // what a person should read; nil: dropped
}

// Rig is a running installation.
type Rig struct {
	cfg      Config
	stack    supervise.Stack
	adminDSN string
	registry *http.Server
	address  string           // of the registry
	password string           // of whoever pushes; empty while the registry is open
	network  *lab.Network     // nil without namespaces
	server   *postgres.Server // nil when it is not ours
	failed   chan error       // the first program that ended by itself
}

// Up brings the ground of an installation up. What was up already is taken down again when it fails. The caller's main
// (or TestMain) has called lab.MaybeRunInit.
func Up(ctx context.Context, cfg Config) (*Rig, error) {
	r := &Rig{cfg: cfg, failed: make(chan error, 1)}
	if r.cfg.Out == nil {
		r.cfg.Out = io.Discard
	}
	steps := []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"data folder", r.takeDir},
		{"prerequisites", r.prerequisites},
		{"local network", r.startNetwork},
		{"database", r.startDatabase},
		{"registry", r.startRegistry},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.name, err), r.Close())
		}
	}
	return r, nil
}

// AdminDSN is the superuser's URL of the database "app_platform".
func (r *Rig) AdminDSN() string { return r.adminDSN }

// RegistryAddr is "127.0.0.1:PORT": the registry's address on the machine and on every node.
func (r *Rig) RegistryAddr() string { return r.address }

// Network is the lab's switch; nil when nodes are plain.
func (r *Rig) Network() *lab.Network { return r.network }

// Keep has release called when everything is taken down.
func (r *Rig) Keep(name string, release func()) {
	r.stack.Push(name, func() error { release(); return nil })
}

// Close takes everything down, last first. Safe to call twice.
func (r *Rig) Close() error { return r.stack.Close() }

// Wait answers nil when ctx ends, and an error when a program that should run ends by itself.
func (r *Rig) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.failed:
		return err
	}
}

func (r *Rig) say(format string, args ...any) { fmt.Fprintf(r.cfg.Out, format+"\n", args...) }

func (r *Rig) path(elements ...string) string {
	return filepath.Join(append([]string{r.cfg.Dir}, elements...)...)
}

func (r *Rig) takeDir(context.Context) error {
	if r.cfg.Dir == "" {
		return errors.New("a data folder (Dir) is required")
	}
	abs, err := filepath.Abs(r.cfg.Dir)
	if err != nil {
		return err
	}
	r.cfg.Dir = abs
	// The database server's account passes through the folder; only the owner reads it.
	if err := os.MkdirAll(abs, 0o711); err != nil {
		return err
	}
	lock, err := filelock.Try(r.path("lock"), filelock.Exclusive)
	if errors.Is(err, filelock.ErrBusy) {
		return fmt.Errorf("%s: %w", abs, ErrInUse)
	}
	if err != nil {
		return err
	}
	r.stack.Push("lock", func() error { lock.Release(); return nil })
	return nil
}

// prerequisites installs what is missing. Without root the lab's own needs fall away, because nodes are plain then.
func (r *Rig) prerequisites(ctx context.Context) error {
	features := r.cfg.Features
	if r.cfg.DatabaseURL == "" {
		features = append(features, prereq.Postgres)
	}
	if r.isolates() {
		features = append(features, prereq.Lab)
	}
	return prereq.EnsureTo(ctx, r.cfg.Out, features...)
}

func (r *Rig) isolates() bool { return os.Geteuid() == 0 && !r.cfg.Plain }

func (r *Rig) startNetwork(ctx context.Context) error {
	if !r.isolates() {
		return nil
	}
	if err := errors.Join(lab.Sweep(), removeCgroups(r.cgroup())); err != nil {
		return err
	}
	if err := lab.Supported(ctx); err != nil {
		r.say("local nodes are plain processes here: %v", err)
		return nil
	}
	network, err := lab.New(ctx, lab.Config{})
	if err != nil {
		return err
	}
	r.network = network
	r.stack.Push("local network", network.Close)
	return nil
}

func (r *Rig) startDatabase(ctx context.Context) error {
	if r.cfg.DatabaseURL != "" {
		r.adminDSN = r.cfg.DatabaseURL
		return checkDatabase(ctx, r.adminDSN)
	}
	var err error
	if r.server, err = postgres.Start(ctx, r.databaseConfig()); err != nil {
		return err
	}
	r.stack.Push("database", func() error { return r.server.Stop() })
	if err := ensureDatabase(ctx, r.server.DSN("postgres")); err != nil {
		return err
	}
	r.adminDSN = r.server.DSN(Database)
	return nil
}

func (r *Rig) databaseConfig() postgres.Config {
	cfg := postgres.Config{DataDir: r.path("postgres"), DieWithParent: true}
	if r.cfg.Throwaway {
		cfg.Profile = postgres.Throwaway
	}
	return cfg
}

// CrashDatabase kills the embedded server as a power cut of its machine would, and starts it again on
// the same data, at the same address. Not for concurrent use.
func (r *Rig) CrashDatabase(ctx context.Context) error {
	if err := r.KillDatabase(); err != nil {
		return err
	}
	return r.StartDatabase(ctx)
}

// KillDatabase kills the embedded server as a power cut of its machine would. Not for concurrent use.
func (r *Rig) KillDatabase() error {
	if r.server == nil {
		return errors.New("this rig did not start the database server")
	}
	return r.server.Kill()
}

// StartDatabase starts the embedded server again on the data that it had, at the same address. Not for concurrent use.
func (r *Rig) StartDatabase(ctx context.Context) error {
	server, err := postgres.Start(ctx, r.databaseConfig())
	if err != nil {
		return fmt.Errorf("start the database again: %w", err)
	}
	r.server = server
	return nil
}

func (r *Rig) startRegistry(context.Context) error {
	handler, err := ociregistry.New(r.path("registry"))
	if err != nil {
		return err
	}
	listener, err := r.registryListener()
	if err != nil {
		return err
	}
	r.address = listener.Addr().String()
	guarded, err := r.guardRegistry(handler)
	if err != nil {
		return err
	}
	r.registry = &http.Server{Handler: guarded, ReadHeaderTimeout: 10 * time.Second}
	r.stack.Push("registry", r.registry.Close)
	r.serveRegistry(listener)
	return nil
}

// pusher is the user name for pushes to the registry.
const pusher = "push"

// guardRegistry puts the registry behind the platform's tokens; the keys are fetched when the first token comes, as the
// platform starts later.
func (r *Rig) guardRegistry(handler http.Handler) (http.Handler, error) {
	if r.cfg.Platform == "" {
		return handler, nil
	}
	file := r.RegistryPasswordFile()
	kept, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		kept = []byte(rand.Text())
		err = os.WriteFile(file, kept, 0o600)
	}
	if err != nil {
		return nil, err
	}
	r.password = string(kept)
	keys := adapter.NewKeySet(r.cfg.Platform+"/.well-known/jwks.json", nil)
	auth := ociregistry.Auth{Hosts: []string{r.address}, Issuer: r.cfg.Platform, Key: keys.Key, User: pusher,
		Password: r.password}
	return auth.Protect(handler), nil
}

// RegistryPasswordFile holds the password of the registry's user "push", once the registry is behind the platform's
// tokens.
func (r *Rig) RegistryPasswordFile() string { return r.path("registry", "push-password") }

// RegistryPush returns the credentials for pushes to the registry; anonymous while it is open.
func (r *Rig) RegistryPush() authn.Authenticator {
	if r.password == "" {
		return authn.Anonymous
	}
	return &authn.Basic{Username: pusher, Password: r.password}
}

// serveRegistry serves one more listener until the registry or the listener is closed.
func (r *Rig) serveRegistry(listener net.Listener) {
	go func() { _ = r.registry.Serve(listener) }()
}

// registryListener takes the port of the last time: artifacts are pinned by a reference that holds it.
func (r *Rig) registryListener() (net.Listener, error) {
	address, file := r.cfg.Registry, r.path("registry", "address")
	if data, err := os.ReadFile(file); err == nil && address == "" {
		address = string(data)
	}
	if address == "" {
		free, err := loopback.AddressOn("127.0.0.1")
		if err != nil {
			return nil, err
		}
		address = free
	}
	listener, err := loopback.Listen(address) // one that AddressOn closed may be held a while by a forked process
	if err != nil {
		return nil, err
	}
	return listener, os.WriteFile(file, []byte(listener.Addr().String()), 0o644)
}
