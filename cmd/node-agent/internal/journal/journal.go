// Package journal is the agent's memory on the disk of the tasks it took: an append-only file of JSON
// lines, each synced before the agent acts on it. With it a restarted agent neither repeats a task nor
// forgets its outcome. It holds ids, fences, states and outcomes, never a specification, so no secret
// of a task comes near it.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
)

const (
	fileName = "journal.jsonl"
	// keepOutcomes bounds the acknowledged outcomes that are kept in full.
	keepOutcomes = 512
	// keepEntries bounds the acknowledged tasks that are remembered at all, by id and fence.
	keepEntries = 10_000
	// compactAt is the file size in bytes over which it is rewritten, unless most of it is alive.
	compactAt = 8 << 20
	// maxLine bounds a line when reading, in bytes.
	maxLine = 8 << 20
)

// StateRunning is the state of a task that was accepted and has no outcome yet.
const StateRunning = "RUNNING"

// Entry is what is known of a task.
type Entry struct {
	TaskID   string `json:"taskId"`
	Fence    int64  `json:"fence"`
	MemberID string `json:"memberId,omitempty"`
	Kind     string `json:"kind,omitempty"`
	// State is StateRunning or the outcome's.
	State string `json:"state"`
	// Epoch is the life of the member's init in which the task was started; empty before that.
	Epoch string `json:"epoch,omitempty"`
	// Outcome is nil while the task runs, and for old tasks of which only the state is remembered.
	Outcome *Outcome `json:"outcome,omitempty"`
	// Reported says that the platform has acknowledged the outcome.
	Reported bool      `json:"reported,omitempty"`
	At       time.Time `json:"at"`
	// Context is what lines of the log say of the task besides; empty for a task of an older agent.
	Context Context `json:"context,omitzero"`
}

// Context names a task's tenant, project, app, instance, operation and trace, as everywhere in logs.
type Context struct {
	OrgID         string `json:"orgId,omitempty"`
	ProjectID     string `json:"projectId,omitempty"`
	AppSlug       string `json:"appSlug,omitempty"`
	InstanceID    string `json:"instanceId,omitempty"`
	OperationID   string `json:"operationId,omitempty"`
	CorrelationID string `json:"correlationId,omitempty"`
	// Traceparent is where what is done for the task belongs, as W3C Trace Context writes it.
	Traceparent string `json:"traceparent,omitempty"`
}

// Attrs returns the fields of a line of the log; what is empty is left out.
func (c Context) Attrs() []slog.Attr {
	var attrs []slog.Attr
	for _, each := range []slog.Attr{slog.String("correlation_id", c.CorrelationID), slog.String("org_id", c.OrgID),
		slog.String("project_id", c.ProjectID), slog.String("app_slug", c.AppSlug),
		slog.String("app_instance_id", c.InstanceID), slog.String("operation_id", c.OperationID),
		slog.String("trace_id", c.traceID())} {
		if each.Value.String() != "" {
			attrs = append(attrs, each)
		}
	}
	return attrs
}

// traceID returns the id of the trace that Traceparent names.
func (c Context) traceID() string {
	if parts := strings.Split(c.Traceparent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

// LogValue returns what lines of the log say of the task. Logged under the key "" they are fields of the line itself.
func (e Entry) LogValue() slog.Value {
	return slog.GroupValue(append([]slog.Attr{slog.String("task_id", e.TaskID), slog.String("kind", e.Kind),
		slog.Int64("fence", e.Fence), slog.String("member_id", e.MemberID)}, e.Context.Attrs()...)...)
}

// Outcome is how a task ended, as it is reported.
type Outcome struct {
	State    string          `json:"state"`
	ExitCode *int            `json:"exitCode,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// Journal is safe for use by many goroutines. Every change is on the disk when its call returns.
type Journal struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	file    *os.File
	size    int64
	floor   int64 // size right after the last compaction
	entries map[string]Entry
	// torn is set when an append or a compaction failed: the file may end in half a line, which would corrupt the next
	// one, or be replaced already.
	torn bool
}

// Open reads the journal in dir, or starts one. A last line cut short by a crash is dropped; Skipped
// lines elsewhere are damage and are counted in the second result.
func Open(dir string, now func() time.Time) (*Journal, int, error) {
	j := &Journal{dir: dir, now: now, entries: map[string]Entry{}}
	damaged, err := j.load()
	if err != nil {
		return nil, 0, err
	}
	if err := j.compact(); err != nil {
		return nil, 0, err
	}
	return j, damaged, nil
}

func (j *Journal) path() string { return filepath.Join(j.dir, fileName) }

func (j *Journal) load() (damaged int, err error) {
	file, err := os.Open(j.path())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open journal: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		var entry Entry
		if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.TaskID == "" {
			damaged++
			continue
		}
		j.entries[entry.TaskID] = entry
	}
	if err := lines.Err(); err != nil {
		return damaged, fmt.Errorf("read journal: %w", err)
	}
	return damaged, nil
}

// Close releases the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}

// Get gives what is known of a task.
func (j *Journal) Get(taskID string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry, ok := j.entries[taskID]
	return entry, ok
}

// Unreported lists the tasks with an outcome that the platform has not acknowledged, oldest first.
func (j *Journal) Unreported() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var waiting []Entry
	for _, entry := range j.entries {
		if entry.Outcome != nil && !entry.Reported {
			waiting = append(waiting, entry)
		}
	}
	sort.Slice(waiting, func(a, b int) bool { return waiting[a].At.Before(waiting[b].At) })
	return waiting
}

// Accept notes that the task is taken, before anything is done for it.
func (j *Journal) Accept(taskID string, fence int64, memberID, kind string, of Context) error {
	return j.put(Entry{TaskID: taskID, Fence: fence, MemberID: memberID, Kind: kind, State: StateRunning, Context: of})
}

// Started notes in which life of the member's init the task is about to be started.
func (j *Journal) Started(taskID, epoch string) error {
	return j.change(taskID, func(entry *Entry) { entry.Epoch = epoch })
}

// Finish notes the outcome, before it is reported.
func (j *Journal) Finish(taskID string, outcome Outcome) error {
	return j.change(taskID, func(entry *Entry) { entry.State, entry.Outcome = outcome.State, &outcome })
}

// Reported notes that the platform has the outcome of this fence; of another fence it says nothing.
func (j *Journal) Reported(taskID string, fence int64) error {
	return j.change(taskID, func(entry *Entry) {
		entry.Reported = entry.Reported || entry.Fence == fence && entry.Outcome != nil
	})
}

func (j *Journal) change(taskID string, apply func(*Entry)) error {
	j.mu.Lock()
	entry, ok := j.entries[taskID]
	j.mu.Unlock()
	if !ok {
		return fmt.Errorf("journal: task %s is not known", taskID)
	}
	apply(&entry)
	return j.put(entry)
}

// put appends, syncs, and only then remembers. After an append that failed, of a full disk for one, the file is written
// again from what is remembered before anything is added; until that succeeds nothing is accepted.
func (j *Journal) put(entry Entry) error {
	entry.At = j.now().UTC()
	line, err := encode(entry)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn {
		if err := j.compact(); err != nil {
			return err
		}
	}
	if err := j.append(line); err != nil {
		j.torn = true
		return fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(line))
	j.entries[entry.TaskID] = entry
	if j.size > compactAt && j.size > 2*j.floor {
		_ = j.compact() // the entry is on the disk; what failed is tried again before the next one
	}
	return nil
}

func (j *Journal) append(line []byte) error {
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	return j.file.Sync()
}

func encode(entry Entry) ([]byte, error) {
	line, err := json.Marshal(entry)
	if err != nil {
		return nil, fmt.Errorf("encode journal entry: %w", err)
	}
	return append(line, '\n'), nil
}

// compact rewrites the file with what is alive: all that runs or waits to be reported, and of the rest
// the newest within the bounds.
func (j *Journal) compact() error {
	j.torn = true // until the new file is the one that is appended to
	j.trim()
	var buffer bytes.Buffer
	for _, entry := range j.entries {
		line, err := encode(entry)
		if err != nil {
			return err
		}
		buffer.Write(line)
	}
	if err := durable.WriteFile(j.path(), buffer.Bytes(), 0o600); err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	file, err := os.OpenFile(j.path(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.torn = false
	j.file, j.size, j.floor = file, int64(buffer.Len()), int64(buffer.Len())
	return nil
}

func (j *Journal) trim() {
	var settled []Entry
	for _, entry := range j.entries {
		if entry.Reported {
			settled = append(settled, entry)
		}
	}
	sort.Slice(settled, func(a, b int) bool { return settled[a].At.After(settled[b].At) })
	for rank, entry := range settled {
		if rank >= keepEntries {
			delete(j.entries, entry.TaskID)
		} else if rank >= keepOutcomes && entry.Outcome != nil {
			entry.Outcome = nil
			j.entries[entry.TaskID] = entry
		}
	}
}
