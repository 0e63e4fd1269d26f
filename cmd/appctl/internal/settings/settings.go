// Package settings keeps appctl's configuration file: named contexts, each a server with a credential and a default
// project. The file holds credentials, so it is readable by its owner alone, written as a whole or not at all, and
// refused when others can read it.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxFile bounds the configuration file.
const maxFile = 1 << 20

// Context is a server with what is needed to use it.
type Context struct {
	// Server is the platform's address.
	Server string `json:"server"`
	// Token is the credential; empty after a logout.
	Token string `json:"token,omitempty"`
	// TokenExpiresAt is when it stops working; zero when unknown.
	TokenExpiresAt time.Time `json:"tokenExpiresAt,omitzero"`
	// Project is the default project's id or slug; empty for none.
	Project string `json:"project,omitempty"`
}

// File is the whole configuration.
type File struct {
	// Current names the context in use; empty without one.
	Current string `json:"currentContext"`
	// Contexts are all contexts by name.
	Contexts map[string]Context `json:"contexts"`
}

// Load reads the file; one that does not exist is an empty configuration. A file that others can read is an error.
func Load(path string) (*File, error) {
	empty := &File{Contexts: map[string]Context{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("configuration %s can be read by others: run chmod 600 on it: it has credentials", path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("configuration %s is larger than %d bytes", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := json.Unmarshal(text, empty); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	if empty.Contexts == nil {
		empty.Contexts = map[string]Context{}
	}
	return empty, nil
}

// Save writes the file beside its place and moves it there, readable by its owner alone.
func (f *File) Save(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	// CreateTemp makes the file 0600.
	temporary, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.Write(append(text, '\n')); err != nil {
		_ = temporary.Close()
		return fmt.Errorf("configuration: %w", err)
	}
	if err := temporary.Close(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}
