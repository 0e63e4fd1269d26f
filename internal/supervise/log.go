package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const (
	maxLogBytes = 16 << 20 // a log file; one older file of the same size is kept beside it
	maxTail     = 4 << 10  // what Tail remembers
)

// Log is a file that takes a program's output, bounded: at 16 MiB it becomes FILE.1 and a new one begins. Safe for
// concurrent use.
type Log struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64
	tail []byte
}

// OpenLog opens DIR/NAME.log for appending, making the folder.
func OpenLog(dir, name string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	l := &Log{path: filepath.Join(dir, name+".log")}
	return l, l.open()
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends p, which may be up to one pipe's worth longer than the bound.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(p)) > maxLogBytes && l.size > 0 {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	l.tail = append(l.tail, p...)
	l.tail = append(l.tail[:0], l.tail[max(0, len(l.tail)-maxTail):]...)
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *Log) rotate() error {
	_ = l.file.Close()
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	return l.open()
}

// Path is the file's path.
func (l *Log) Path() string { return l.path }

// Tail is the end (4 KiB at most) of what was written since OpenLog: the words to show when the program failed.
func (l *Log) Tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.tail))
}

// Close closes the file. Writing afterwards is an error.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
