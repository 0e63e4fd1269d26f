package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The lines of postmaster.pid that matter here (counted from 0), see miscadmin.h of PostgreSQL.
const (
	linePID       = 0
	lineSocketDir = 4
	lineStatus    = 7
)

// attach returns the live server of the data directory, nil without one. It waits for one that is starting, and for the
// end of one that is stopping.
func attach(ctx context.Context, cfg Config) (*Server, error) {
	for {
		lines := readPIDFile(cfg.DataDir)
		if len(lines) <= lineSocketDir {
			return nil, nil
		}
		pid, _ := strconv.Atoi(lines[linePID])
		if !isPostgres(pid) {
			// A stale file whose number another program got by now would make the server refuse to start.
			return nil, removeStale(cfg.DataDir)
		}
		if len(lines) > lineStatus && lines[lineStatus] == "ready" {
			server := &Server{pid: pid, socketDir: lines[lineSocketDir], attached: true}
			return server, server.awaitReady(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the running postgres %d: %w", pid, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

func readPIDFile(dataDir string) []string {
	data, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return nil
	}
	lines := strings.Split(string(data), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func removeStale(dataDir string) error {
	if err := os.Remove(filepath.Join(dataDir, "postmaster.pid")); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("stale postmaster.pid: %w", err)
	}
	return nil
}

// isPostgres reports whether pid is a live (not a zombie) postgres process.
func isPostgres(pid int) bool {
	if pid <= 0 {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name is in parentheses, the state letter follows: "123 (postgres) S 1 …".
	return strings.Contains(string(stat), "(postgres) ") && !strings.Contains(string(stat), "(postgres) Z")
}
