package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxCells bounds a notebook.
const maxCells = 200

// book keeps a notebook's cells in a folder, which several replicas may have at once. Without one
// it keeps nothing.
type book struct{ folder string }

// kept is what the file holds: the cells' code, in their order.
type kept struct {
	Cells []string `json:"cells"`
}

func (b book) path() string { return filepath.Join(b.folder, "notebook.json") }

// read returns the cells that are kept.
func (b book) read() (kept, error) {
	var all kept
	if b.folder == "" {
		return all, nil
	}
	text, err := os.ReadFile(b.path())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// put keeps a cell by its number, and answers it; 0 adds one at the end.
func (b book) put(number int, code string) (int, error) {
	if b.folder == "" {
		return number, nil
	}
	lock, err := os.OpenFile(filepath.Join(b.folder, ".notebook.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return 0, err
	}
	all, err := b.read()
	if err != nil {
		return 0, err
	}
	if number == 0 {
		number = len(all.Cells) + 1
	}
	if number < 1 || number > maxCells {
		return 0, fmt.Errorf("a notebook has at most %d cells", maxCells)
	}
	for len(all.Cells) < number {
		all.Cells = append(all.Cells, "")
	}
	all.Cells[number-1] = code
	return number, b.write(all)
}

// write replaces the file whole: a reader finds the old content or the new one, after a crash too.
func (b book) write(all kept) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(b.folder, ".notebook-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(next.Name()) }() // nothing, once it has its name
	_, err = next.Write(append(text, '\n'))
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), b.path())
}
