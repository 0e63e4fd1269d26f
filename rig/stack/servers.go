package stack

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/install"
)

// roles are what a server does, by its number from 1.
func (s *Stack) roles(number int) string {
	if number > len(s.config.Roles) || s.config.Roles[number-1] == "" {
		if number <= len(s.config.Programs) && s.config.Programs[number-1] != "" {
			return "api,worker" // an earlier build may know no others
		}
		return "api,worker,billing"
	}
	return s.config.Roles[number-1]
}

// serverProgram is what a server runs, by its number from 1.
func (s *Stack) serverProgram(number int) string {
	if number > len(s.config.Programs) || s.config.Programs[number-1] == "" {
		return s.program("app-platform")
	}
	return s.config.Programs[number-1]
}

// webhookFlags let a server send webhooks to receivers on this machine.
func (s *Stack) webhookFlags() (flags []string) {
	for _, address := range s.config.Webhooks {
		flags = append(flags, "--webhook-allow", address)
	}
	return flags
}

// registryFlags let a server ask the installation's registry and those of the configuration, all without TLS.
func (s *Stack) registryFlags() []string {
	flags := []string{"--registry-pull-tokens", s.RegistryAddr()}
	for _, host := range append([]string{s.RegistryAddr()}, s.config.Registries...) {
		flags = append(flags, "--registry-allow", host, "--registry-insecure", host)
	}
	return flags
}

// sandboxFlags let publishers' adapters be on this machine. An earlier build has no sandboxes.
func (s *Stack) sandboxFlags(number int) []string {
	if number <= len(s.config.Programs) && s.config.Programs[number-1] != "" {
		return nil
	}
	return []string{"--sandbox-allow", "127.0.0.0/8"}
}

// startServer starts the platform, listening on this machine and, through an inherited descriptor,
// on the switch that only nodes see.
func (s *Stack) startServer(ctx context.Context) error {
	command := []string{
		s.serverProgram(1), "serve", "--listen", s.config.Listen, "--public-url", s.URL, "--dev",
		"--keys-dir", filepath.Join(s.config.Dir, "keys"), "--roles", s.roles(1),
	}
	command = slices.Concat(command, s.registryFlags(), s.webhookFlags(), s.sandboxFlags(1), s.config.ServerFlags)
	spec := supervise.Spec{Name: "server", Restart: supervise.OnFailure,
		Env: s.env("DATABASE_URL=" + s.AdminDSN())}
	if s.Network() != nil {
		file, address, err := s.Network().ListenFile(":0")
		if err != nil {
			return err
		}
		spec.ExtraFiles = []*os.File{file}
		command = append(command, "--node-listen-fd", "3")
		s.nodeURL = "http://" + net.JoinHostPort(s.Network().Addr().String(), portOf(address))
	} else {
		s.nodeURL = s.URL
	}
	command = append(command, "--node-url", s.nodeURL)
	spec.Command, s.APIURLs = command, []string{s.URL}
	var err error
	if s.Server, err = s.Program(spec); err != nil {
		return err
	}
	if err := s.AwaitReady(ctx); err != nil {
		return fmt.Errorf("%w; see %s", err, filepath.Join(s.LogDir(), "server.log"))
	}
	return nil
}

// KillOthers kills the servers beyond the first, as a power cut would, and leaves them dead.
func (s *Stack) KillOthers() error {
	for _, child := range s.Others {
		if err := child.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		if err := child.Stop(); err != nil {
			return err
		}
	}
	s.Others, s.OtherURLs, s.APIURLs = nil, nil, s.APIURLs[:1]
	return nil
}

// StartServer starts one more server, of a program or with "" of the installation's own, with roles and further flags.
// It returns where the server will listen.
func (s *Stack) StartServer(name, program, roles string, flags ...string) (_ *supervise.Child, address string,
	err error) {
	if address, err = s.address(name); err != nil {
		return nil, "", err
	}
	child, err := s.beside(name, cmp.Or(program, s.program("app-platform")), address, roles, flags)
	return child, address, err
}

// beside starts a server beyond the first: same database, same keys, other address.
func (s *Stack) beside(name, program, address, roles string, flags []string) (*supervise.Child, error) {
	return s.Program(supervise.Spec{
		Name: name, Restart: supervise.OnFailure, Env: s.env("DATABASE_URL=" + s.AdminDSN()),
		Command: slices.Concat([]string{
			program, "serve", "--listen", address, "--public-url", s.URL, "--dev",
			"--keys-dir", filepath.Join(s.config.Dir, "keys"), "--node-url", s.nodeURL, "--roles", roles,
		}, s.registryFlags(), s.webhookFlags(), flags, s.config.ServerFlags),
	})
}

// StartOthers starts the servers beyond the first: same database, same keys, other address.
func (s *Stack) StartOthers(ctx context.Context) error {
	for i := 2; i <= s.config.Servers; i++ {
		name := fmt.Sprintf("server-%d", i)
		address, err := s.address(name)
		if err != nil {
			return err
		}
		child, err := s.beside(name, s.serverProgram(i), address, s.roles(i), s.sandboxFlags(i))
		if err != nil {
			return err
		}
		s.Others, s.OtherURLs = append(s.Others, child), append(s.OtherURLs, "http://"+address)
		if strings.Contains(s.roles(i), "api") {
			s.APIURLs = append(s.APIURLs, "http://"+address)
		}
		ready, cancel := context.WithTimeout(ctx, time.Minute)
		err = install.AwaitHTTP(ready, http.DefaultClient, "http://"+address+"/readyz")
		cancel()
		if err != nil {
			return fmt.Errorf("%w; see %s", err, filepath.Join(s.LogDir(), name+".log"))
		}
	}
	return nil
}
