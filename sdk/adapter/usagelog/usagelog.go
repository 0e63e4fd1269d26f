// Package usagelog is a durable list of usage records for adapters that count while they act: what was counted is
// written to a file of its instance before the adapter goes on, and read from there page by page, as often as a reader
// likes. A record is identified by its id: one that is added again is not counted again.
package usagelog

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// Log keeps the records of instances in a directory.
type Log struct {
	dir   string
	mu    sync.Mutex
	books map[string]*book
}

// book is the list of one instance, as its file holds it.
type book struct {
	epoch   string // another file has another one
	records []contract.UsageRecord
	known   map[string]bool
	file    *os.File
}

// New returns the log in a directory, which it creates when it is missing.
func New(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("usage log: %w", err)
	}
	return &Log{dir: dir, books: make(map[string]*book)}, nil
}

// safe is an instance's id as the platform makes it.
var safe = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Add writes records of an instance that are not in the log yet, and returns when they are on the disk.
func (l *Log) Add(instance string, records ...contract.UsageRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.open(instance)
	if err != nil {
		return err
	}
	var text strings.Builder
	var fresh []contract.UsageRecord
	for _, record := range records {
		if b.known[record.ID] {
			continue
		}
		line, err := json.Marshal(record)
		if err != nil {
			return fmt.Errorf("usage log: %w", err)
		}
		text.Write(append(line, '\n'))
		fresh, b.known[record.ID] = append(fresh, record), true
	}
	if len(fresh) == 0 {
		return nil
	}
	if err = b.write(text.String()); err != nil {
		_ = b.file.Close()
		delete(l.books, instance) // what was written of it is read again
		return fmt.Errorf("usage log: %w", err)
	}
	b.records = append(b.records, fresh...)
	return nil
}

// write appends text to the file and waits for the disk.
func (b *book) write(text string) error {
	if _, err := b.file.WriteString(text); err != nil {
		return err
	}
	return b.file.Sync()
}

// Page returns the records of an instance after a cursor. A cursor of another log, or none, begins at the first record.
func (l *Log) Page(instance, after string) (contract.UsagePage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.open(instance)
	if err != nil {
		return contract.UsagePage{}, err
	}
	from := 0
	if epoch, number, ok := strings.Cut(after, "."); ok && epoch == b.epoch {
		from, _ = strconv.Atoi(number)
	}
	from = min(max(from, 0), len(b.records))
	to := min(from+contract.MaxUsageRecords, len(b.records))
	return contract.UsagePage{Cursor: b.epoch + "." + strconv.Itoa(to), Count: to, Records: b.records[from:to:to]}, nil
}

// Last returns the record of an instance that was added last; the zero record when it has no records. A caller that
// polls a source reads on from there.
func (l *Log) Last(instance string) (contract.UsageRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.open(instance)
	if err != nil || len(b.records) == 0 {
		return contract.UsageRecord{}, err
	}
	return b.records[len(b.records)-1], nil
}

// Each visits the records of an instance, in the order in which they were added. The visit must not use the log.
func (l *Log) Each(instance string, visit func(contract.UsageRecord)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := l.open(instance)
	if err != nil {
		return err
	}
	for _, record := range b.records {
		visit(record)
	}
	return nil
}

// open reads an instance's file, or makes it.
func (l *Log) open(instance string) (*book, error) {
	if b := l.books[instance]; b != nil {
		return b, nil
	}
	if !safe.MatchString(instance) {
		return nil, fmt.Errorf("usage log: %q is not an instance's id", instance)
	}
	path := filepath.Join(l.dir, instance+".usage")
	b := &book{known: make(map[string]bool)}
	whole, err := b.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		whole, err = 0, nil
	}
	if err == nil {
		b.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err == nil {
		err = b.begin(whole)
	}
	if err != nil {
		return nil, fmt.Errorf("usage log: %w", err)
	}
	l.books[instance] = b
	return b, nil
}

// read takes up the file's whole lines and returns how many bytes they are: the last may be half of one.
func (b *book) read(path string) (whole int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return whole, nil
		}
		whole += int64(len(line))
		var record contract.UsageRecord
		switch {
		case b.epoch == "":
			b.epoch = strings.TrimSpace(line)
		case json.Unmarshal([]byte(line), &record) == nil:
			b.records, b.known[record.ID] = append(b.records, record), true
		}
	}
}

// begin cuts off half a line and writes a new file's epoch.
func (b *book) begin(whole int64) error {
	if err := b.file.Truncate(whole); err != nil {
		return err
	}
	if _, err := b.file.Seek(whole, 0); err != nil {
		return err
	}
	if b.epoch != "" {
		return nil
	}
	b.epoch = rand.Text()[:8]
	return b.write(b.epoch + "\n")
}
