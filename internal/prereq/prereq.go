package prereq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/internal/filelock"
)

// ErrMissing is wrapped by every answer that says what a person has to install.
var ErrMissing = errors.New("programs are missing")

// installTimeout bounds one Ensure: an index update and some hundred MB of packages over a slow mirror.
const installTimeout = 15 * time.Minute

// Ensure makes the features available, saying on standard error what it installs. It changes nothing when all is there.
func Ensure(ctx context.Context, features ...Feature) error {
	return EnsureTo(ctx, os.Stderr, features...)
}

// EnsureTo is Ensure with its messages written to out.
func EnsureTo(ctx context.Context, out io.Writer, features ...Feature) error {
	missing, err := Missing(ctx, features...)
	if err != nil || len(missing.Packages) == 0 {
		return err
	}
	if why := cannotInstall(); why != "" {
		return missing.error(why)
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	lock, err := filelock.Acquire(ctx, lockPath(), filelock.Exclusive)
	if err != nil {
		return err
	}
	defer lock.Release()
	// Another process may have installed it while this one waited.
	if missing, err = Missing(ctx, features...); err != nil || len(missing.Packages) == 0 {
		return err
	}
	if err := install(ctx, out, missing); err != nil {
		return err
	}
	if missing, err = Missing(ctx, features...); err == nil && len(missing.Packages) > 0 {
		return missing.error("the packages of this distribution did not bring them")
	}
	return err
}

// Lack is what Missing found absent.
type Lack struct {
	What     []string // the things, for people
	Packages []string // the Debian packages that bring them, sorted, each once
}

func (l Lack) error(why string) error {
	return fmt.Errorf("%w: %s (%s); install them with: apt-get install --no-install-recommends %s",
		ErrMissing, strings.Join(l.What, ", "), why, strings.Join(l.Packages, " "))
}

// Missing says what the features lack on this machine. An unknown feature is an error.
func Missing(ctx context.Context, features ...Feature) (lack Lack, err error) {
	for _, feature := range features {
		needs, known := table[feature]
		if !known {
			return Lack{}, fmt.Errorf("prereq: unknown feature %q", feature)
		}
		for _, n := range needs {
			if !n.probe(ctx) {
				lack.What = append(lack.What, n.what)
				lack.Packages = append(lack.Packages, n.packages...)
			}
		}
	}
	slices.Sort(lack.Packages)
	lack.Packages = slices.Compact(lack.Packages)
	return lack, nil
}

func cannotInstall() string {
	if os.Geteuid() != 0 {
		return "only root can install them"
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "this machine has no apt-get"
	}
	return ""
}

func lockPath() string {
	if info, err := os.Stat("/run"); err == nil && info.IsDir() {
		return "/run/app-platform-prereq.lock"
	}
	return filepath.Join(os.TempDir(), "app-platform-prereq.lock")
}
