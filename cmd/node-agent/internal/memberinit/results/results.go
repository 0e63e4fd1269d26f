// Package results keeps how a member's runs ended on its node's disk, until that is acknowledged.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// maxResults bounds the results that wait for their acknowledgement; the oldest go first.
const maxResults = 256

// Store keeps the outcome of runs on the disk until they are acknowledged.
type Store struct{ root *os.Root }

// dir holds the results, in a member's folder of state.
const dir = "results"

// Open opens the results in a member's folder of state, and makes their folder and others there.
func Open(state *os.Root, others ...string) (*Store, error) {
	for _, dir := range append(others, dir) {
		if err := state.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("open results: %w", err)
		}
	}
	root, err := state.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	return &Store{root: root}, nil
}

// Put stores a result so that it is there after a crash, and drops the oldest over the bound.
func (r *Store) Put(result wire.RunResult) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("store result: %w", err)
	}
	temp := result.Key + ".new"
	file, err := r.root.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store result: %w", err)
	}
	_, err = file.Write(raw)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = r.root.Rename(temp, result.Key+".json")
	}
	if err != nil {
		_ = r.root.Remove(temp) // what a full disk took of it
		return fmt.Errorf("store result: %w", err)
	}
	return r.trim()
}

// Get reads a stored result; fs.ErrNotExist without one.
func (r *Store) Get(key string) (wire.RunResult, error) {
	file, err := r.root.Open(key + ".json")
	if err != nil {
		return wire.RunResult{}, err
	}
	defer file.Close()
	return decode(file)
}

func decode(file io.Reader) (wire.RunResult, error) {
	var result wire.RunResult
	if err := json.NewDecoder(io.LimitReader(file, 4*wire.StreamCap)).Decode(&result); err != nil {
		return result, fmt.Errorf("read result: %w", err)
	}
	return result, nil
}

// Drop forgets a result.
func (r *Store) Drop(key string) { _ = r.root.Remove(key + ".json") }

func (r *Store) trim() error {
	folder, err := r.root.Open(".")
	if err != nil {
		return fmt.Errorf("bound results: %w", err)
	}
	defer folder.Close()
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("bound results: %w", err)
	}
	if len(entries) <= maxResults {
		return nil
	}
	sort.Slice(entries, func(i, j int) bool { return modified(entries[i]).Before(modified(entries[j])) })
	for _, entry := range entries[:len(entries)-maxResults] {
		r.Drop(strings.TrimSuffix(entry.Name(), ".json"))
	}
	return nil
}

func modified(entry os.DirEntry) time.Time {
	info, err := entry.Info()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Read reads a result from a member's folder of state, for an agent that finds the member's init ended. It returns
// fs.ErrNotExist without a result.
func Read(state, key string) (wire.RunResult, error) {
	file, err := os.OpenInRoot(state, filepath.Join(dir, key+".json"))
	if err != nil {
		return wire.RunResult{}, err
	}
	defer file.Close()
	return decode(file)
}
