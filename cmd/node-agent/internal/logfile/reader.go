package logfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// windowSize is how much of a file is read at once, in bytes.
const windowSize = 64 << 10

// Gap is a range of numbers whose lines are not there.
type Gap struct {
	// From and To are the first and the last number.
	From, To int64
	// Restarted reports that the machine restarted: lines may be lost, and no more than a few numbers are lines.
	Restarted bool
}

// Item is a line or a gap. Its text is valid until the next call.
type Item struct {
	Entry Entry
	Gap   *Gap
}

// Reader reads the lines of one process from a number on, while they are written. It is for one goroutine.
type Reader struct {
	dir   *os.Root
	next  int64 // the number that is expected
	held  *Entry
	file  *os.File
	first int64 // of file
	boot  []byte
	begun bool // the first line of file was read

	offset   int64  // in file, of window
	window   []byte // what was read and not yet returned
	buffer   []byte
	skipping bool // in the middle of what is no record
	restart  bool // a file of another boot was begun since the last line
}

// NewReader reads what comes after a number, in a process's folder, which it closes at its own end.
func NewReader(dir *os.Root, after int64) *Reader { return &Reader{dir: dir, next: after + 1} }

// Close lets go of the files.
func (r *Reader) Close() {
	r.leave()
	_ = r.dir.Close()
}

func (r *Reader) leave() {
	if r.file != nil {
		_ = r.file.Close()
	}
	r.file, r.window, r.offset, r.begun, r.skipping = nil, nil, 0, false, false
}

// Next returns the next line or gap; false while there is no more.
func (r *Reader) Next() (Item, bool, error) {
	if r.held != nil {
		entry := *r.held
		r.held = nil
		return r.take(entry), true, nil
	}
	for {
		entry, ok, err := r.entry()
		switch {
		case err != nil || !ok:
			return Item{}, false, err
		case entry.Number < r.next:
			continue
		case entry.Number > r.next:
			gap := &Gap{From: r.next, To: entry.Number - 1, Restarted: r.restart}
			r.held, r.next = &entry, entry.Number
			return Item{Gap: gap}, true, nil
		}
		return r.take(entry), true, nil
	}
}

func (r *Reader) take(entry Entry) Item {
	r.next, r.restart = entry.Number+1, false
	return Item{Entry: entry}
}

// entry returns the next record, of the next file where one ends.
func (r *Reader) entry() (Entry, bool, error) {
	for {
		if r.file == nil {
			if ok, err := r.open(); !ok {
				return Entry{}, false, err
			}
		}
		entry, ok, err := r.record()
		if ok || err != nil {
			return entry, ok, err
		}
		newer, err := r.newer()
		if newer == 0 {
			return Entry{}, false, err
		}
		// The file has its last line once there is a newer one, which may have been begun after the record was sought.
		if entry, ok, err := r.record(); ok || err != nil {
			return entry, ok, err
		}
		r.leave()
	}
}

// open opens the file that has the expected number, or the first after it.
func (r *Reader) open() (bool, error) {
	list, err := firsts(r.dir)
	if err != nil {
		return false, err
	}
	at := 0
	for i, first := range list {
		if first <= r.next {
			at = i
		}
	}
	for ; at < len(list); at++ {
		if list[at] <= r.first {
			continue
		}
		file, err := openFile(r.dir, list[at])
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return false, err
		}
		r.file, r.first = file, list[at]
		return true, nil
	}
	return false, nil
}

// newer returns the first number of a file that was begun after the open one; 0 without one.
func (r *Reader) newer() (int64, error) {
	list, err := firsts(r.dir)
	if err != nil || len(list) == 0 || list[len(list)-1] <= r.first {
		return 0, err
	}
	return list[len(list)-1], nil
}

// record returns the next record of the open file; false at its end, and at a record that is not whole yet.
func (r *Reader) record() (Entry, bool, error) {
	for {
		line, rest, found := bytes.Cut(r.window, []byte{'\n'})
		if !found {
			more, err := r.fill()
			if !more {
				return Entry{}, false, err
			}
			continue
		}
		r.offset += int64(len(line) + 1)
		r.window = rest
		switch {
		case r.skipping:
			r.skipping = false
		case !r.begun:
			r.begun = true
			r.restart = r.restart || r.boot != nil && !bytes.Equal(r.boot, line)
			r.boot = bytes.Clone(line)
		default:
			if entry, ok := parse(line); ok {
				return entry, true, nil
			}
		}
	}
}

// fill reads on from the beginning of the record that is not whole, since a writer that was killed in it is cut off
// there by the next one.
func (r *Reader) fill() (more bool, err error) {
	if len(r.window) > maxRecord { // it is none
		r.offset += int64(len(r.window))
		r.window, r.skipping = nil, true
	}
	if r.offset > maxFile {
		return false, nil
	}
	if r.buffer == nil {
		r.buffer = make([]byte, windowSize)
	}
	n, err := r.file.ReadAt(r.buffer, r.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	more = bytes.IndexByte(r.buffer[:n], '\n') >= 0 || n > maxRecord
	r.window = nil
	if more {
		r.window = r.buffer[:n]
	}
	return more, nil
}
