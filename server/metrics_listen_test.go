package server

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Whoever reaches the public listener reads no metrics there, whatever the operator set and forgot to set.
func TestMetricsAreNeverOnThePublicListener(t *testing.T) {
	t.Parallel()
	for _, listen := range [][]string{nil, {"127.0.0.1:0"}} {
		b := newBench(t, func(c *Config) { c.Edge.MetricsListen = listen })
		response, err := http.Get(b.url + "/metrics")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.NotContains(t, string(body), "go_goroutines")
	}
	flags, config := pflag.NewFlagSet("serve", pflag.ContinueOnError), Defaults()
	config.Bind(flags)
	require.NoError(t, flags.Parse(nil))
	require.Equal(t, []string{"127.0.0.1:9464"}, config.Edge.MetricsListen,
		"unless told otherwise, this machine alone reads them")
	require.NoError(t, flags.Parse([]string{"--metrics-listen", ""}))
	require.Empty(t, config.Edge.MetricsListen)
}

func TestASecondServerOfAMachineServesItsMetricsAtAFreePort(t *testing.T) {
	t.Parallel()
	log := new(bytes.Buffer)
	p := &platform{log: slog.New(slog.NewTextHandler(log, nil))}
	first, err := net.Listen("tcp", standardMetrics)
	if err == nil {
		defer func() { _ = first.Close() }()
	} // else another program of this machine has it, which is as good
	second, err := p.listenMetrics(standardMetrics)
	require.NoError(t, err)
	defer func() { _ = second.Close() }()
	require.True(t, second.Addr().(*net.TCPAddr).IP.IsLoopback())
	require.NotEqual(t, standardMetrics, second.Addr().String())
	require.Contains(t, log.String(), "--metrics-listen")
	_, err = p.listenMetrics(second.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE, "an address that the operator named is not replaced")
}
