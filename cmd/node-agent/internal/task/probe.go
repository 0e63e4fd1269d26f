package task

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// maxDetail bounds the detail of a probe's result, in bytes.
const maxDetail = 1000

// ProbeResult is the result of a PROBE: whether the last attempt succeeded, how many there were, and
// what the last one saw.
type ProbeResult struct {
	OK       bool   `json:"ok"`
	Attempts int    `json:"attempts"`
	Detail   string `json:"detail"`
}

// probe tries until one attempt succeeds or all are spent. A probe that fails is a failed task with
// the same result shape.
func (e *Executor) probe(ctx context.Context, task Task, spec *nodetask.Probe) (journal.Outcome, error) {
	var result ProbeResult
	for result.Attempts < spec.Tries() {
		if result.Attempts > 0 {
			if err := pace.Pause(ctx, spec.Interval()); err != nil {
				break
			}
		}
		result.Attempts++
		detail, err := e.probeOnce(ctx, task, spec)
		if err == nil {
			result.OK, result.Detail = true, text.Head(detail, maxDetail)
			return success(result), nil
		}
		result.Detail = text.Head(text.Clean([]byte(err.Error())), maxDetail)
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return failure(StateFailed, result, "the probe failed: "+result.Detail), nil
	case errors.Is(cause, errTimedOut):
		return failure(StateTimedOut, result, "the probe failed within its time: "+result.Detail), nil
	default:
		return journal.Outcome{}, cause
	}
}

func (e *Executor) probeOnce(ctx context.Context, task Task, spec *nodetask.Probe) (string, error) {
	limit := spec.Timeout()
	if spec.Exec != nil {
		return e.probeExec(ctx, task, spec.Exec.Command, limit) // the member's init keeps the time
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	way, err := e.Sandboxes.Reach(task.MemberID)
	if err != nil {
		return "", err
	}
	if spec.TCP != nil {
		return e.eachHost(way, spec.TCP.Host, func(host string) (string, error) {
			return probeTCP(ctx, way, net.JoinHostPort(host, strconv.Itoa(spec.TCP.Port)))
		})
	}
	return e.eachHost(way, spec.HTTP.Host, func(host string) (string, error) {
		address := net.JoinHostPort(host, strconv.Itoa(spec.HTTP.Port))
		return probeHTTP(ctx, way, "http://"+address+spec.HTTP.Path, spec.HTTP.ExpectStatus)
	})
}

// eachHost tries the host that is named, or else the loopback and the member's own address or its node's.
func (e *Executor) eachHost(way sandbox.Way, host string, try func(host string) (string, error)) (string, error) {
	hosts := []string{host}
	if host == "" {
		hosts = []string{"127.0.0.1"}
		if own := cmp.Or(way.Address, e.NodeAddress); own != "" {
			hosts = append(hosts, own)
		}
	}
	var failed error
	for _, host := range hosts {
		detail, err := try(host)
		if err == nil {
			return detail, nil
		}
		failed = errors.Join(failed, err)
	}
	return "", failed
}

// probeExec runs the command in a sandbox that exists; a probe creates none.
func (e *Executor) probeExec(ctx context.Context, task Task, command []string, limit time.Duration) (string, error) {
	client, err := e.Sandboxes.Lookup(ctx, task.MemberID)
	if err != nil {
		return "", err
	}
	if client == nil {
		return "", errors.New("the member has no sandbox on this node")
	}
	key := task.ID + "." + rand.Text() // a probe only looks: a repeat by a restarted agent is a fresh one
	request := wire.Run{Key: key, Fence: task.Fence, Command: command, TimeoutMillis: limit.Milliseconds()}
	result, err := client.Run(ctx, request, func(wire.Output) {})
	cleanup := context.WithoutCancel(ctx)
	if err != nil {
		_ = client.Cancel(cleanup, key)
		return "", err
	}
	_ = client.Ack(cleanup, key)
	said := strings.TrimSpace(text.Tail(text.Clean(append(result.Stdout, result.Stderr...)), maxDetail/2))
	switch {
	case result.TimedOut:
		return "", fmt.Errorf("not done within %s: %s", limit, said)
	case result.ExitCode != 0:
		return "", fmt.Errorf("exit code %d: %s", result.ExitCode, said)
	}
	return said, nil
}

func probeTCP(ctx context.Context, way sandbox.Way, address string) (string, error) {
	conn, err := way.Dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	return "connected to " + address, nil
}

// probeHTTP follows no redirect: a probe asks one server.
func probeHTTP(ctx context.Context, way sandbox.Way, url string, expect int) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: way.Dial}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	good := response.StatusCode == expect || expect == 0 && response.StatusCode >= 200 && response.StatusCode < 400
	if !good {
		return "", fmt.Errorf("%s answered %d", url, response.StatusCode)
	}
	return fmt.Sprintf("%s answered %d", url, response.StatusCode), nil
}
