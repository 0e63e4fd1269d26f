package memberinit

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

// results keeps the outcome of runs on the disk until they are acknowledged.
type results struct{ root *os.Root }

func openResults(state *os.Root) (*results, error) {
	for _, dir := range []string{dirResults, DirLogs} {
		if err := state.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("open results: %w", err)
		}
	}
	root, err := state.OpenRoot(dirResults)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	return &results{root: root}, nil
}

// put stores a result so that it is there after a crash, and drops the oldest over the bound.
func (r *results) put(result wire.RunResult) error {
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

// get reads a stored result; fs.ErrNotExist when there is none.
func (r *results) get(key string) (wire.RunResult, error) {
	file, err := r.root.Open(key + ".json")
	if err != nil {
		return wire.RunResult{}, err
	}
	defer file.Close()
	return decodeResult(file)
}

func decodeResult(file io.Reader) (wire.RunResult, error) {
	var result wire.RunResult
	if err := json.NewDecoder(io.LimitReader(file, 4*wire.StreamCap)).Decode(&result); err != nil {
		return result, fmt.Errorf("read result: %w", err)
	}
	return result, nil
}

func (r *results) drop(key string) { _ = r.root.Remove(key + ".json") }

func (r *results) trim() error {
	dir, err := r.root.Open(".")
	if err != nil {
		return fmt.Errorf("bound results: %w", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return fmt.Errorf("bound results: %w", err)
	}
	if len(entries) <= maxResults {
		return nil
	}
	sort.Slice(entries, func(i, j int) bool { return modified(entries[i]).Before(modified(entries[j])) })
	for _, entry := range entries[:len(entries)-maxResults] {
		r.drop(strings.TrimSuffix(entry.Name(), ".json"))
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

// StoredResult reads a result from a member's directory on the node, for an agent that finds the
// member's init gone. fs.ErrNotExist means that there is none.
func StoredResult(dir, key string) (wire.RunResult, error) {
	file, err := os.OpenInRoot(filepath.Join(dir, DirState), filepath.Join(dirResults, key+".json"))
	if err != nil {
		return wire.RunResult{}, err
	}
	defer file.Close()
	return decodeResult(file)
}
