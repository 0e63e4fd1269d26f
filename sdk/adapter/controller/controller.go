package controller

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/automation"
)

const (
	// maxConnections bounds open connections; more wait in the kernel's queue.
	maxConnections = 256
	// maxHeader bounds a request's headers, in bytes.
	maxHeader = 64 << 10
	// readTimeout bounds reading a request, writeTimeout answering it: an action may take two minutes.
	readTimeout  = 30 * time.Second
	writeTimeout = 3 * time.Minute
	idleTimeout  = 2 * time.Minute
	// stopTimeout is how long requests have to end when the controller stops.
	stopTimeout = 5 * time.Second
)

// Spec is what one controller is.
type Spec struct {
	// Name is the default of --name: the adapter's registered name.
	Name string
	// Manifest is the app manifest the controller is published with; --print-manifest prints it.
	Manifest []byte
	// Build is what the adapter calls its build, such as a release's version: reports of the conformance suite are of
	// a build. Empty means the revision that the program was built from.
	Build string
	// Conformance and Tenancy are the conformance suite's reports of this build; --print-evidence prints them, for who
	// publishes the manifest. They may be nil.
	Conformance, Tenancy []byte
	// Automate runs beside the server until ctx ends, where --service-account-file names the key of the adapter's own
	// account; nil for an adapter that acts only in operations. Its error ends the controller.
	Automate func(ctx context.Context, account *automation.Account, log *slog.Logger) error
	// App returns the app. The directory is the app's own, below --state-dir, created with mode 0700.
	App func(dir string) (adapter.App, error)
}

// options are the flags.
type options struct {
	listen, name, platform, jwks, issuer, stateDir, level string
	listenFD                                              int
	tlsCert, tlsKey, clientCA                             string
	account                                               string
	printManifest, printVersion                           bool
	printEvidence                                         string
}

// Main runs a controller with the process's arguments until SIGINT or SIGTERM, and returns its
// exit code: 0 after a stop on request, 1 after a failure, 2 for wrong flags.
func Main(spec Spec) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, spec, os.Args[1:], os.Stdout, os.Stderr)
}

// Run is Main with everything passed in; it ends when ctx does.
func Run(ctx context.Context, spec Spec, args []string, stdout, stderr io.Writer) int {
	o, err := parse(spec, args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case o.printVersion:
		err = printVersion(spec, stdout)
	case o.printManifest:
		_, err = stdout.Write(spec.Manifest)
	case o.printEvidence == "conformance":
		_, err = stdout.Write(spec.Conformance)
	case o.printEvidence == "tenancy":
		_, err = stdout.Write(spec.Tenancy)
	default:
		err = serve(ctx, spec, o, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func parse(spec Spec, args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(spec.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on")
	flags.IntVar(&o.listenFD, "listen-fd", 0, "serve this inherited listening descriptor instead of --listen")
	flags.StringVar(&o.tlsCert, "tls-cert", "",
		"certificate chain to serve https with, PEM; read again for every handshake")
	flags.StringVar(&o.tlsKey, "tls-key", "", "private key of --tls-cert, PEM")
	flags.StringVar(&o.clientCA, "tls-client-ca", "",
		"CA of the platform's client certificate, PEM; callers without a certificate of this CA are refused")
	flags.StringVar(&o.name, "name", spec.Name, "the adapter's registered name")
	flags.StringVar(&o.platform, "platform-url", "", "the platform's URL")
	flags.StringVar(&o.jwks, "jwks-url", "", "the platform's key set (default: platform-url/.well-known/jwks.json)")
	flags.StringVar(&o.issuer, "issuer", "", "issuer of the platform's request tokens (default: platform-url)")
	flags.StringVar(&o.stateDir, "state-dir", "", "directory of the journal; it must survive restarts")
	flags.StringVar(&o.account, "service-account-file", "",
		"file with the key of the adapter's own service account, for its automation; read again at each use")
	flags.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&o.printVersion, "version", false, "print the versions of build, app and contract, and exit")
	flags.BoolVar(&o.printManifest, "print-manifest", false, "print the app manifest and exit")
	flags.StringVar(&o.printEvidence, "print-evidence", "",
		"print the report of the conformance suite and exit: conformance or tenancy")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.complete(flags.Args())
}

// complete fills in what follows from other flags and names what is missing.
func (o *options) complete(rest []string) error {
	if o.printManifest || o.printVersion {
		return nil
	}
	if o.printEvidence != "" {
		if o.printEvidence != "conformance" && o.printEvidence != "tenancy" {
			return fmt.Errorf("--print-evidence: %q is neither conformance nor tenancy", o.printEvidence)
		}
		return nil
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.platform == "":
		return errors.New("--platform-url must be given")
	case o.stateDir == "":
		return errors.New("--state-dir must be given")
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case o.clientCA != "" && o.tlsCert == "":
		return errors.New("--tls-client-ca needs --tls-cert")
	}
	o.platform = strings.TrimSuffix(o.platform, "/")
	if o.jwks == "" {
		o.jwks = o.platform + "/.well-known/jwks.json"
	}
	if o.issuer == "" {
		o.issuer = o.platform
	}
	return nil
}

func serve(ctx context.Context, spec Spec, o options, stderr io.Writer) error {
	log, err := logger(o, stderr)
	if err != nil {
		return err
	}
	kit, err := newKit(spec, o, log)
	if err != nil {
		return err
	}
	account, err := ownAccount(o)
	if err != nil {
		return err
	}
	if err := kit.Start(ctx); err != nil {
		return err
	}
	defer kit.Stop()
	listener, err := listen(o)
	if err != nil {
		return err
	}
	if listener, err = secure(listener, o); err != nil {
		return err
	}
	log.Info("listening", "address", listener.Addr().String(), "platform", o.platform, "revision", revision())
	return beside(ctx, spec, account, log, func(ctx context.Context) error {
		return serveHTTP(ctx, kit, listener, log)
	})
}

func newKit(spec Spec, o options, log *slog.Logger) (*adapter.Kit, error) {
	dir := filepath.Join(o.stateDir, "app")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	app, err := spec.App(dir)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	return adapter.New(adapter.Config{
		Name: o.name, Build: cmp.Or(spec.Build, revision()), Apps: []adapter.App{app},
		StateDir: filepath.Join(o.stateDir, "journal"),
		Issuer:   o.issuer, Keys: adapter.NewKeySet(o.jwks, nil), GraphQLURL: o.platform + "/graphql", Log: log,
	})
}

// serveHTTP serves until ctx ends. The kit is stopped first, which ends long polls and parks runs.
func serveHTTP(ctx context.Context, kit *adapter.Kit, listener net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("/", kit.Handler())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(),
			slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(limit(listener, maxConnections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	kit.Stop()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("shut down: %w", err), server.Close())
	}
	return nil
}

func listen(o options) (net.Listener, error) {
	if o.listenFD == 0 {
		listener, err := net.Listen("tcp", o.listen)
		if err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
		return listener, nil
	}
	file := os.NewFile(uintptr(o.listenFD), "listener")
	if file == nil {
		return nil, fmt.Errorf("--listen-fd: %d is not a descriptor", o.listenFD)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("--listen-fd: %w", err)
	}
	return listener, nil
}

func logger(o options, stderr io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})).With("adapter", o.name), nil
}

// revision is what the program was built from, where the toolchain recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}
