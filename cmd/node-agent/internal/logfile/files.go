package logfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// suffix is that of a file of lines.
	suffix = ".log"
	// maxFiles bounds the names that are read in a process's folder.
	maxFiles = 4096
	// maxFile bounds what is read of a file, in bytes: more than any bound that is set.
	maxFile = 1 << 30
)

// nameOf is the name of the file that begins with a number.
func nameOf(first int64) string { return fmt.Sprintf("%019d%s", first, suffix) }

// firsts lists the files in a process's folder by the number that each begins with, in their order.
func firsts(dir *os.Root) ([]int64, error) {
	folder, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var list []int64
	for _, name := range names {
		first, err := strconv.ParseInt(strings.TrimSuffix(name, suffix), 10, 64)
		if err == nil && first > 0 && first < maxNumber && name == nameOf(first) {
			list = append(list, first)
		}
	}
	slices.Sort(list)
	return list, nil
}

// openFile opens a file to read; anything but a regular file does not exist.
func openFile(dir *os.Root, first int64) (*os.File, error) {
	if info, err := dir.Lstat(nameOf(first)); err == nil && !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	file, err := dir.OpenFile(nameOf(first), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// head is the first line of a file written in a boot.
func head(boot string) string { return "# " + boot }

// scan reads a whole file: its first line, its entries in their order, and how many bytes are whole lines.
func scan(dir *os.Root, first int64, each func(Entry)) (boot string, whole int64, err error) {
	file, err := openFile(dir, first)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.LimitReader(file, maxFile), maxRecord)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			whole += int64(len(line))
			continue
		}
		if err != nil { // what is left is no whole line
			return boot, whole, nil
		}
		if whole == 0 {
			boot = string(bytes.TrimSuffix(line, []byte{'\n'}))
		}
		whole += int64(len(line))
		if entry, ok := parse(line[:len(line)-1]); ok {
			each(entry)
		}
	}
}

// Last returns the number of the last line in a process's folder; 0 without lines.
func Last(dir *os.Root) (int64, error) {
	list, err := firsts(dir)
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		last := int64(0)
		_, _, err = scan(dir, list[i], func(e Entry) { last = max(last, e.Number) })
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if last > 0 {
			return last, nil
		}
	}
	return 0, err
}

// Before returns the number after which the last count lines come.
func Before(dir *os.Root, count int) (int64, error) {
	list, err := firsts(dir)
	var tail []int64
	for i := len(list) - 1; i >= 0 && err == nil && len(tail) < count; i-- {
		var numbers []int64
		_, _, err = scan(dir, list[i], func(e Entry) { numbers = append(numbers, e.Number) })
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		tail = append(numbers, tail...)
	}
	if len(tail) == 0 || count <= 0 {
		last, lastErr := Last(dir)
		return last, errors.Join(err, lastErr)
	}
	return tail[max(0, len(tail)-count)] - 1, err
}

// Tail returns the end of what a process printed, at most limit bytes of whole records, each with the end of its line.
func Tail(dir *os.Root, limit int) ([]byte, error) {
	list, err := firsts(dir)
	if err != nil {
		return nil, err
	}
	var tail []byte
	for i := len(list) - 1; i >= 0 && len(tail) < limit; i-- {
		var printed []byte
		_, _, err := scan(dir, list[i], func(e Entry) {
			printed = append(printed, e.Text...)
			if !e.Part {
				printed = append(printed, '\n')
			}
			if len(printed) > 2*limit+2*maxRecord {
				printed = append(printed[:0], printed[len(printed)-limit-1:]...)
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		tail = append(printed, tail...)
	}
	return tail[max(0, len(tail)-limit):], nil
}
