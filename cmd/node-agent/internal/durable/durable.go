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
	err := replace(name, data, mode, (*os.File).Sync)
	if err == nil {
		err = SyncDir(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return nil
}

// replace never follows a link that somebody else has put at the name.
func replace(name string, data []byte, mode os.FileMode, sync func(*os.File) error) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(mode), sync(temp), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}

// WriteJSON is WriteFile of v as JSON, readable by the owner only.
func WriteJSON(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(name), err)
	}
	return WriteFile(name, raw, 0o600)
}

// NoteJSON replaces name by v as JSON, and leaves it to the kernel when that is on the disk: for what is written again
// before it is read after a power cut.
func NoteJSON(name string, v any, mode os.FileMode) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = replace(name, raw, mode, func(*os.File) error { return nil })
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(name), err)
	}
	return nil
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
