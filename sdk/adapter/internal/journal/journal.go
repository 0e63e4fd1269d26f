package journal

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

// Journal keeps operations on disk, in one append-only file of JSON lines each:
//
//	DIR/lock                 held while a process uses the directory
//	DIR/epoch                names the change feed
//	DIR/ceiling              versions below it may have been given out
//	DIR/operations/ID.jsonl  one record a line; the first holds the dispatch
//	DIR/tombstones/ID        the attempt up to which the operation is never begun
//
// A crash can tear only the last line, and nothing was done on the strength of a line that is
// torn; it is cut off when the file is opened. When an operation has ended its file is rewritten
// without steps, checkpoints and token. The directory is readable by its owner only, because
// until then the file holds the operation's narrow, short-lived token: without it a restarted
// controller could not go on.
type Journal struct {
	dir  string
	lock *os.File

	mu   sync.Mutex
	torn map[string]int64 // by operation, where its file ends before half a record that could not be cut off
}

// Record is one line. Only what changed is set.
type Record struct {
	At time.Time `json:"at"`
	// Began is when the operation began, where the records of its beginning were deleted.
	Began time.Time `json:"began,omitzero"`
	// Dispatch begins an operation, or raises its attempt.
	Dispatch *contract.Dispatch `json:"dispatch,omitempty"`
	// Hash is the specification hash, beside the first dispatch.
	Hash string `json:"hash,omitempty"`
	// Generation is the attempt with which the run began; a new one forgets steps and checkpoints.
	Generation int `json:"generation,omitempty"`
	// Status is the newest status; Mark is set beside a terminal one (see feed.mark).
	Status *contract.Status `json:"status,omitempty"`
	Mark   uint64           `json:"mark,omitempty"`
	// Step and Spec are what a step is about to send.
	Step string          `json:"step,omitempty"`
	Spec json.RawMessage `json:"spec,omitempty"`
	// Saved are checkpoints.
	Saved map[string]string `json:"saved,omitempty"`
	// Canceled says that the platform requested a cancel; Committed that it is too late for one.
	Canceled  bool `json:"canceled,omitempty"`
	Committed bool `json:"committed,omitempty"`
	// Stillborn says that the dispatch met a tombstone: nothing of it was begun.
	Stillborn bool `json:"stillborn,omitempty"`
}

// maxRecord is the longest line read back, in bytes: a dispatch of [contract.MaxBody] and its frame.
const maxRecord = 4 * contract.MaxBody

// Open opens the journal in a folder, which it creates. It fails when another process uses the folder.
func Open(dir string) (*Journal, error) {
	for _, folder := range []string{"operations", "tombstones"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open journal: %s is in use by another process: %w", dir, err)
	}
	return &Journal{dir: dir, lock: lock, torn: make(map[string]int64)}, nil
}

// Close frees the folder for another process.
func (j *Journal) Close() error { return j.lock.Close() }

func (j *Journal) path(id string) string {
	return filepath.Join(j.dir, "operations", id+".jsonl")
}

// Epoch returns the feed's name, which is generated when the directory is new.
func (j *Journal) Epoch() (string, error) {
	path := filepath.Join(j.dir, "epoch")
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > 0 {
		return strings.TrimSpace(string(raw)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read epoch: %w", err)
	}
	epoch := rand.Text()
	return epoch, writeDurably(path, []byte(epoch))
}

// Ceiling returns the version the feed continues from.
func (j *Journal) Ceiling() (uint64, error) {
	raw, err := os.ReadFile(filepath.Join(j.dir, "ceiling"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read ceiling: %w", err)
	}
	value, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read ceiling: %w", err)
	}
	return value, nil
}

// Raise stores the version that the feed continues from after a restart.
func (j *Journal) Raise(ceiling uint64) error {
	return writeDurably(filepath.Join(j.dir, "ceiling"), strconv.AppendUint(nil, ceiling, 10))
}

// IDs lists the journalled operations.
func (j *Journal) IDs() ([]string, error) {
	files, err := os.ReadDir(filepath.Join(j.dir, "operations"))
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var ids []string
	for _, file := range files {
		if id, ok := strings.CutSuffix(file.Name(), ".jsonl"); ok && wire.IDPattern.MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Read returns the records of one operation, cutting off a torn last line.
func (j *Journal) Read(id string) ([]Record, error) {
	raw, err := os.ReadFile(j.path(id))
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	whole := bytes.LastIndexByte(raw, '\n') + 1
	if whole < len(raw) {
		if err := os.Truncate(j.path(id), int64(whole)); err != nil {
			return nil, fmt.Errorf("cut torn record of %s: %w", id, err)
		}
	}
	var records []Record
	lines := bufio.NewScanner(bytes.NewReader(raw[:whole]))
	lines.Buffer(nil, maxRecord)
	for lines.Scan() {
		var next Record
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return nil, fmt.Errorf("journal of %s, record %d: %w", id, len(records)+1, err)
		}
		records = append(records, next)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", id, err)
	}
	return records, nil
}

// Append adds a record; a durable one is on disk before append returns. Of a record that the disk did not take, being
// full for one, nothing stays: the next one would be glued to its half. Until that is so nothing is added.
func (j *Journal) Append(id string, rec Record, durable bool) error {
	_, statErr := os.Stat(j.path(id))
	line, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	file, err := os.OpenFile(j.path(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	defer file.Close()
	end, err := j.sound(id, file)
	if err != nil {
		return fmt.Errorf("append to journal: %w", err)
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return j.cut(id, file, end, err)
	}
	if !durable {
		return nil
	}
	if err := file.Sync(); err != nil {
		return j.cut(id, file, end, err)
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		return syncDir(filepath.Dir(j.path(id)))
	}
	return nil
}

// sound returns where the file of an operation ends, with what was left of a record before cut off.
func (j *Journal) sound(id string, file *os.File) (int64, error) {
	j.mu.Lock()
	end, torn := j.torn[id]
	j.mu.Unlock()
	if !torn {
		info, err := file.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	if err := file.Truncate(end); err != nil {
		return 0, err
	}
	j.whole(id)
	return end, nil
}

// cut takes back what was written of a record, and returns why it was not taken.
func (j *Journal) cut(id string, file *os.File, end int64, cause error) error {
	if err := file.Truncate(end); err != nil {
		j.mu.Lock()
		j.torn[id] = end
		j.mu.Unlock()
		cause = errors.Join(cause, err)
	}
	return fmt.Errorf("append to journal: %w", cause)
}

// whole notes that the file of an operation holds whole records alone.
func (j *Journal) whole(id string) {
	j.mu.Lock()
	delete(j.torn, id)
	j.mu.Unlock()
}

// Replace rewrites an operation's file with one record.
func (j *Journal) Replace(id string, rec Record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	if err := writeDurably(j.path(id), append(line, '\n')); err != nil {
		return err
	}
	j.whole(id)
	return nil
}

// Remove deletes the records of an operation.
func (j *Journal) Remove(id string) error {
	j.whole(id)
	return os.Remove(j.path(id))
}

// writeDurably replaces a file so that a crash leaves either the old or the new one.
func writeDurably(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
