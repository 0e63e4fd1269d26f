// Package output keeps what commands and processes of a member print, within bounds.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
)

const (
	// logHalf is when a log moves on to its next half; a log takes at most twice this, in bytes.
	logHalf = 512 << 10
	// logTail is how much of a log an inspection shows, in bytes.
	logTail = 16 << 10
)

// Log is a bounded log on the disk: the current half and the one before it.
type Log struct {
	root *os.Root
	name string

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog goes on with the log called name, or begins it.
func OpenLog(root *os.Root, name string) (*Log, error) {
	l := &Log{root: root, name: name}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.file, l.size = file, info.Size()
	return l, nil
}

// Write never fails its caller: a program must not die because its log cannot be kept.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size >= logHalf {
		l.turn()
	}
	written, _ := l.file.Write(p)
	l.size += int64(written)
	return len(p), nil
}

func (l *Log) turn() {
	if err := l.root.Rename(l.name, l.name+".1"); err != nil {
		return
	}
	file, err := l.root.OpenFile(l.name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = l.file.Close()
	l.file, l.size = file, 0
}

// Close lets go of the file.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}

// Tail reads the end of the log called name, over both halves.
func Tail(root *os.Root, name string) (string, error) {
	var whole []byte
	for _, half := range []string{name + ".1", name} {
		raw, err := readEnd(root, half)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		whole = append(whole, raw...)
	}
	return text.Tail(text.Clean(whole), logTail), nil
}

func readEnd(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(0, info.Size()-logTail), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, logTail))
}
