// Package program finds what a command runs, and with which environment.
package program

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// LastWins drops all but the last assignment of each name: with two, C programs would see the first.
func LastWins(env []string) []string {
	at := map[string]int{}
	var unique []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if index, seen := at[name]; seen {
			unique[index] = entry
			continue
		}
		at[name] = len(unique)
		unique = append(unique, entry)
	}
	return unique
}

// ValueOf returns the value of a name; empty where it is not assigned.
func ValueOf(env []string, name string) string {
	for _, entry := range env {
		if rest, ok := strings.CutPrefix(entry, name+"="); ok {
			return rest
		}
	}
	return ""
}

// Find finds a program as execvp does, with the PATH of the command instead of init's.
func Find(program, dir, path string) (string, error) {
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		return program, Executable(program)
	}
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, program)
		if filepath.IsAbs(candidate) && Executable(candidate) == nil {
			return candidate, nil
		}
	}
	return "", wire.Errorf(wire.CodeStartFailed, "command: program %q is not in PATH", program)
}

// Executable returns nil for a file that can be executed.
func Executable(program string) error {
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return wire.Errorf(wire.CodeStartFailed, "command: there is no program %q", program)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return wire.Errorf(wire.CodeStartFailed, "command: %q is not an executable file", program)
	}
	return nil
}
