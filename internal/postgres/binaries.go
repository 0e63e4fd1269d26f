package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BinEnv names the environment variable that points at the folder with the server programs, before any other place.
const BinEnv = "APP_PLATFORM_POSTGRES_BIN"

// MinMajor is the oldest usable major version: cloning by file copy and the read watermark both need 15.
const MinMajor = 15

// ErrNotInstalled is returned by Find when the machine has no usable server programs.
var ErrNotInstalled = errors.New("no PostgreSQL server programs found")

// Binaries are the server programs of one PostgreSQL version.
type Binaries struct {
	Dir   string // the folder that holds initdb and postgres, absolute, symlinks resolved
	Major int    // for example 15
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// Find looks for server programs of version MinMajor or newer: in $APP_PLATFORM_POSTGRES_BIN, in Debian's
// /usr/lib/postgresql/*/bin, where pg_config says, and beside a postgres on PATH. The newest of the first place that
// has any wins. Programs that are scripts are passed over: a wrapper may change user or talk to another server. The
// error wraps ErrNotInstalled and lists what was tried and why it was refused.
func Find(ctx context.Context) (Binaries, error) {
	var refused []string
	for _, place := range places(ctx) {
		var found []Binaries
		for _, dir := range place {
			b, err := inspect(ctx, dir)
			if err != nil {
				refused = append(refused, err.Error())
				continue
			}
			found = append(found, b)
		}
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b Binaries) int { return a.Major - b.Major }), nil
		}
	}
	if len(refused) == 0 {
		return Binaries{}, ErrNotInstalled
	}
	return Binaries{}, fmt.Errorf("%w: %s", ErrNotInstalled, strings.Join(refused, "; "))
}

// places lists candidate folders, grouped by where they come from, best first.
func places(ctx context.Context) [][]string {
	if dir := os.Getenv(BinEnv); dir != "" {
		return [][]string{{dir}}
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	groups := [][]string{debian}
	if out, err := output(ctx, "pg_config", "--bindir"); err == nil {
		groups = append(groups, []string{strings.TrimSpace(out)})
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			groups = append(groups, []string{filepath.Dir(real)})
		}
	}
	return groups
}

// inspect checks that dir holds real initdb and postgres programs of a usable version.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Binaries{}, err
	}
	for _, name := range []string{"initdb", "postgres"} {
		if err := requireELF(filepath.Join(dir, name)); err != nil {
			return Binaries{}, err
		}
	}
	out, err := output(ctx, filepath.Join(dir, "postgres"), "-V")
	if err != nil {
		return Binaries{}, fmt.Errorf("%s/postgres -V: %w", dir, err)
	}
	match := versionPattern.FindStringSubmatch(out)
	if match == nil {
		return Binaries{}, fmt.Errorf("%s/postgres does not report its version", dir)
	}
	major, _ := strconv.Atoi(match[1])
	if major < MinMajor {
		return Binaries{}, fmt.Errorf("%s is PostgreSQL %d, %d or newer is needed", dir, major, MinMajor)
	}
	return Binaries{Dir: dir, Major: major}, nil
}

func requireELF(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	magic := make([]byte, 4)
	if _, err := file.Read(magic); err != nil || !bytes.Equal(magic, []byte("\x7fELF")) {
		return fmt.Errorf("%s is not a program but a wrapper", path)
	}
	return nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}
