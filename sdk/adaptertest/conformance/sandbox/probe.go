package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// probe tries until one attempt succeeds, as often as the spec allows.
func (m *member) probe(ctx context.Context, spec nodetask.Probe) (Outcome, error) {
	for attempt := 1; ; attempt++ {
		err := m.probeOnce(ctx, spec)
		if err == nil {
			return Outcome{Result: map[string]any{"ok": true, "attempts": attempt, "detail": ""}}, nil
		}
		if attempt >= spec.Attempts || !wait(ctx, spec.Interval()) {
			return Outcome{
				Result: map[string]any{"ok": false, "attempts": attempt, "detail": err.Error()},
			}, fmt.Errorf("the probe failed: %w", err)
		}
	}
}

// probeOnce makes one attempt of a probe within the spec's timeout.
func (m *member) probeOnce(ctx context.Context, spec nodetask.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, spec.Timeout())
	defer cancel()
	switch {
	case spec.Exec != nil:
		_, err := m.run(ctx, nodetask.Run{Command: spec.Exec.Command}, nil)
		return err
	case spec.TCP != nil:
		conn, err := (&net.Dialer{}).DialContext(
			ctx, "tcp", net.JoinHostPort(hostOf(spec.TCP.Host), strconv.Itoa(spec.TCP.Port)),
		)
		if err != nil {
			return err
		}
		return conn.Close()
	case spec.HTTP != nil:
		return get(ctx, spec.HTTP)
	}
	return errProbe
}

// get succeeds when the URL answers with the expected status, or with any of 200 to 399.
func get(ctx context.Context, probe *nodetask.HTTPProbe) error {
	url := "http://" + net.JoinHostPort(hostOf(probe.Host), strconv.Itoa(probe.Port)) + probe.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	good := resp.StatusCode >= 200 && resp.StatusCode < 400
	if probe.ExpectStatus != 0 {
		good = resp.StatusCode == probe.ExpectStatus
	}
	if !good {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}

func hostOf(host string) string {
	if host == "" {
		return "127.0.0.1"
	}
	return host
}
