package adapter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxEntry bounds one line of the ledger, in bytes.
const maxEntry = 1 << 20

// Entry is what a member had written down when it went.
type Entry struct {
	// Operation is the one that took it away.
	Operation string `json:"operation"`
	// Member is the member.
	Member string `json:"member"`
	// Lines are "OPERATION KIND MILLISECONDS .", one for each thing done to it; see [ParseEffect].
	Lines []string `json:"lines"`
}

// Effect is a thing that was done to a member.
type Effect struct {
	// Operation did it, and Kind is the operation's kind in the words of the contract.
	Operation, Kind string
	// At is when, by the node's clock.
	At time.Time
}

// ErrTorn is returned for a line without its end: the node's disk was full, the command failed, and the rest of the
// line was never written.
var ErrTorn = errors.New("the line is incomplete")

// ParseEffect reads a line of an entry.
func ParseEffect(line string) (Effect, error) {
	whole, ended := strings.CutSuffix(line, " .")
	if !ended {
		return Effect{}, fmt.Errorf("%w: %q", ErrTorn, line)
	}
	parts := strings.Fields(whole)
	if len(parts) != 3 {
		return Effect{}, fmt.Errorf("the line %q does not have three words", line)
	}
	at, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Effect{}, fmt.Errorf("the time in the line %q: %w", line, err)
	}
	return Effect{Operation: parts[0], Kind: parts[1], At: time.UnixMilli(at)}, nil
}

// Ledger is a file of entries that outlives the adapter's process. An adapter that dies between
// writing an entry and remembering it writes the same entry again.
type Ledger struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLedger opens the ledger of a folder for appending.
func OpenLedger(dir string) (*Ledger, error) {
	file, err := os.OpenFile(filepath.Join(dir, "ledger.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &Ledger{file: file}, nil
}

// Append writes an entry and waits for the disk.
func (l *Ledger) Append(entry Entry) error {
	encoded, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("encode an entry: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The first byte ends the part of an entry that a full disk may have left; such a part does not count.
	if _, err := l.file.Write(append(append([]byte{'\n'}, encoded...), '\n')); err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return l.file.Sync()
}

// ReadLedger reads what a folder's ledger holds. A line that a kill or a full disk cut short is left out: its
// operation has not ended and writes it again, or has failed.
func ReadLedger(dir string) ([]Entry, error) {
	file, err := os.Open(filepath.Join(dir, "ledger.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	defer func() { _ = file.Close() }()
	var entries []Entry
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, maxEntry)
	for scanner.Scan() {
		var entry Entry
		if json.Unmarshal(scanner.Bytes(), &entry) == nil {
			entries = append(entries, entry)
		}
	}
	return entries, scanner.Err()
}
