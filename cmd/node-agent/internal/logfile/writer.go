package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	// DefaultBound is how much is kept of a process's lines, in bytes, unless the agent is given another bound.
	DefaultBound = 8 << 20
	// MinBound is the smallest bound, in bytes.
	MinBound = 256 << 10
	// parts is how many files a bound is divided into: rotation takes one of them.
	parts = 8
)

// Writer writes the lines of one process. There is one for a folder at a time; its methods may be called by many
// goroutines.
type Writer struct {
	dir         *os.Root
	boot        string
	bound, each int64

	mu   sync.Mutex
	file *os.File // nil while none could be opened
	size int64
	next int64
}

// Open goes on with the lines of a process in a folder of logs, or begins them. Bound is in bytes; 0 is DefaultBound.
func Open(logs *os.Root, process string, bound int64) (*Writer, error) {
	if bound <= 0 {
		bound = DefaultBound
	}
	bound = max(bound, MinBound)
	if err := logs.Mkdir(process, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open log: %w", err)
	}
	dir, err := logs.OpenRoot(process)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	w := &Writer{dir: dir, boot: bootID(), bound: bound, each: bound / parts, next: 1}
	if err := w.resume(); err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	return w, nil
}

// bootID names this run of the machine.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(raw))
}

// resume finds where an earlier writer ended, and cuts off the record that it was killed in.
func (w *Writer) resume() error {
	list, err := firsts(w.dir)
	if err != nil || len(list) == 0 {
		return errors.Join(err, w.begin())
	}
	last := list[len(list)-1]
	w.next = last
	boot, whole, err := scan(w.dir, last, func(e Entry) { w.next = max(w.next, e.Number+1) })
	if err != nil || boot != head(w.boot) {
		w.next += Jump
		return w.begin()
	}
	file, err := w.dir.OpenFile(nameOf(last), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.file, w.size = file, whole
	return file.Truncate(whole)
}

// begin starts a file with the next number, and deletes the oldest over the bound.
func (w *Writer) begin() error {
	file, err := w.dir.OpenFile(nameOf(w.next), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if w.file != nil {
		_ = w.file.Close()
	}
	w.file, w.size = file, 0
	w.append([]byte(head(w.boot) + "\n"))
	return w.trim()
}

// trim deletes the oldest files until what the rest may grow to is within the bound.
func (w *Writer) trim() error {
	list, err := firsts(w.dir)
	if err != nil {
		return err
	}
	total := w.each
	for i := len(list) - 2; i >= 0; i-- {
		info, err := w.dir.Lstat(nameOf(list[i]))
		if err != nil {
			continue
		}
		if total += info.Size(); total > w.bound {
			_ = w.dir.Remove(nameOf(list[i]))
		}
	}
	return nil
}

// append writes whole records or none of them.
func (w *Writer) append(records []byte) {
	if w.file == nil {
		return
	}
	written, err := w.file.Write(records)
	if err != nil && written > 0 {
		_ = w.file.Truncate(w.size)
		return
	}
	w.size += int64(written)
}

// put writes entries; it never fails its caller, since a program must not die because its log cannot be kept. What the
// disk does not take has used its numbers.
func (w *Writer) put(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size >= w.each && w.begin() != nil && w.size >= 2*w.each {
		w.next += int64(len(entries))
		return
	}
	var records []byte
	for i := range entries {
		entries[i].Number = w.next
		w.next++
		records = entries[i].appendTo(records)
	}
	w.append(records)
}

// Close closes the file.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	_ = w.dir.Close()
}

// Lines turns what is printed to one stream into lines. It is an io.Writer that never fails, for one goroutine.
type Lines struct {
	to        *Writer
	stream    Stream
	held      []byte // the line that has no end yet
	continued bool
}

// Lines returns what takes one stream of one run of the process.
func (w *Writer) Lines(stream Stream) *Lines { return &Lines{to: w, stream: stream} }

// Write takes the next bytes. A line is written when it has ended, or is longer than MaxText.
func (l *Lines) Write(printed []byte) (int, error) {
	length, now := len(printed), time.Now()
	var entries []Entry
	for len(printed) > 0 {
		line, rest, ended := bytes.Cut(printed, []byte{'\n'})
		space := MaxText - len(l.held)
		if len(line) > space {
			entries = append(entries, l.cut(line[:space], now, true))
			printed = printed[space:]
			continue
		}
		if !ended {
			l.held = append(l.held, line...)
			break
		}
		entries = append(entries, l.cut(line, now, false))
		printed = rest
	}
	l.to.put(entries)
	return length, nil
}

// cut ends a record with the last of its bytes.
func (l *Lines) cut(last []byte, now time.Time, part bool) Entry {
	text := append(bytes.Clone(l.held), last...)
	entry := Entry{Time: now, Stream: l.stream, Part: part, Continued: l.continued, Text: text}
	l.held, l.continued = l.held[:0], part
	return entry
}

// Close writes what has no end of line.
func (l *Lines) Close() {
	if len(l.held) > 0 || l.continued {
		l.to.put([]Entry{l.cut(nil, time.Now(), false)})
	}
}
