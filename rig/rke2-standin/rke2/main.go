// Command rke2 is a stand-in of RKE2, and says so: see the package comment of the module.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// version is what the stand-in is asked for by: Kubernetes', and the release of RKE2 whose interface is kept. The build
// sets it.
var version = "v1.36.3+rke2r1"

// releaseVar names the environment variable by which Kubernetes' programs are told the release.
const releaseVar = "RKE2_STANDIN_RELEASE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rke2 (stand-in):", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("a command is needed: server, agent, token, etcd-snapshot, certificate, kubectl or --version")
	}
	switch args[0] {
	case "--version", "-v":
		fmt.Printf("rke2 version %s (a stand-in, not RKE2)\n", version)
		return nil
	case "server", "agent":
		fmt.Fprintf(os.Stderr, "rke2 %s is a stand-in, not RKE2: it runs the real Kubernetes behind RKE2's interface\n",
			version)
		settings, err := read(args[0], args[1:])
		if err != nil {
			return err
		}
		if settings.flag("cluster-reset") {
			return reset(ctx, settings)
		}
		return serve(ctx, settings)
	case "token":
		return token(args[1:])
	case "etcd-snapshot":
		return snapshots(ctx, args[1:])
	case "certificate":
		return certificates(args[1:])
	case "kubectl":
		return become("kubectl", args[1:])
	}
	return fmt.Errorf("no help topic for %q", args[0])
}

// become replaces this process by a program of the bundle.
func become(name string, args []string) error {
	return syscall.Exec(program("kube"), append([]string{name}, args...), os.Environ())
}

// notify tells a service manager that this is up, where one has asked.
func notify() {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	_ = syscall.Sendto(fd, []byte("READY=1"), 0, &syscall.SockaddrUnix{Name: strings.Replace(path, "@", "\x00", 1)})
}
