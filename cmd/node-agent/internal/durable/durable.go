// Package durable writes small files so that a crash leaves the old content or the new, never a part.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces name by data and returns when both the bytes and the name are on the disk.
func WriteFile(name string, data []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return nil
}

// WriteJSON is WriteFile of v as JSON, readable by the owner only.
func WriteJSON(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(name), err)
	}
	return WriteFile(name, raw, 0o600)
}

// SyncDir makes renames in dir survive a power cut.
func SyncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer handle.Close()
	if err := handle.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
