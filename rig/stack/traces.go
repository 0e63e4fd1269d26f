package stack

import (
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/rig/lab"
)

// traceSettings are OpenTelemetry's standard variables for programs that send to a receiver: each span is sent soon, so
// that a reader does not wait for a full batch.
func traceSettings(receiver string) []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + receiver, "OTEL_BSP_SCHEDULE_DELAY=200"}
}

// serveTraces has the configured receiver listen on this machine and, for agents, on the switch that only nodes see.
func (s *Stack) serveTraces() error {
	if s.config.Traces == nil {
		return nil
	}
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.traces = traceSettings(local.Addr().String())
	s.receive(local)
	s.nodeTraces = append(os.Environ(), s.traces...) // a node without namespaces is a process of this machine
	if s.Network() == nil {
		return nil
	}
	inside, err := s.Network().Listen(":0")
	if err != nil {
		return err
	}
	s.receive(inside)
	s.nodeTraces = slices.Concat(lab.NodeEnv(), traceSettings(net.JoinHostPort(s.Network().Addr().String(),
		portOf(inside.Addr()))))
	return nil
}

// receive serves the receiver until the installation is taken down.
func (s *Stack) receive(on net.Listener) {
	server := &http.Server{Handler: s.config.Traces, ReadHeaderTimeout: 10 * time.Second}
	s.Keep("receiver of traces", func() { _ = server.Close() })
	go func() { _ = server.Serve(on) }()
}

// env is the environment of a program of the platform on this machine.
func (s *Stack) env(more ...string) []string { return slices.Concat(os.Environ(), s.traces, more) }
