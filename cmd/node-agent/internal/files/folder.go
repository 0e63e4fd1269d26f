package files

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// inRoot is the path in the root as os.Root has it.
func inRoot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// openFolder opens a folder, and nothing else: a pipe in its place would wait for a writer.
func openFolder(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(inRoot(path), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// enter opens a folder as the root of paths of its own.
func enter(root *os.Root, path string) (*os.Root, error) {
	folder, err := openFolder(root, path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", folder.Fd()))
}

// list answers a page of a folder's entries by name. However large the folder, a page is what is in memory.
func (q *request) list(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	most := volumefiles.DefaultEntries
	if text := query.Get(volumefiles.FirstQuery); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > volumefiles.MaxEntries {
			return refusal("INVALID_ARGUMENT", "first: a page has 1 to %d entries", volumefiles.MaxEntries)
		}
	}
	after, err := volumefiles.ParseCursor(query.Get(volumefiles.AfterQuery))
	if err != nil {
		return refusal("INVALID_ARGUMENT", "%v", err)
	}
	folder, err := enter(q.root, q.path)
	if err != nil {
		return err
	}
	defer folder.Close()
	names, more, err := q.names(r, folder, after, most)
	if err != nil {
		return err
	}
	page := volumefiles.Page{Entries: []volumefiles.Entry{}}
	for _, name := range names {
		if info, err := folder.Lstat(name); err == nil { // else it vanished meanwhile
			page.Entries = append(page.Entries, entry(info))
		}
	}
	if more {
		page.Next = volumefiles.Cursor(names[len(names)-1])
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page) // the platform may have gone
	return nil
}

// names returns the first names behind one, and whether there are more.
func (q *request) names(r *http.Request, folder *os.Root, after string, most int) (out []string, more bool, err error) {
	open, err := folder.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer open.Close()
	least := &greatest{}
	for {
		entries, err := open.ReadDir(volumefiles.MaxEntries)
		for _, one := range entries {
			name := one.Name()
			if name <= after || q.path == "" && name == volumefiles.UploadsFolder {
				continue
			}
			heap.Push(least, name)
			if least.Len() > most {
				heap.Pop(least)
				more = true
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.Context().Err()
		}
		if err != nil {
			return nil, false, err
		}
	}
	out = make([]string, least.Len())
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = heap.Pop(least).(string)
	}
	return out, more, nil
}

// greatest is a heap of names, the last in order on top.
type greatest []string

func (g *greatest) Len() int           { return len(*g) }
func (g *greatest) Less(i, j int) bool { return (*g)[i] > (*g)[j] }
func (g *greatest) Swap(i, j int)      { (*g)[i], (*g)[j] = (*g)[j], (*g)[i] }
func (g *greatest) Push(name any)      { *g = append(*g, name.(string)) }
func (g *greatest) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}

// entry describes what a folder has.
func entry(info fs.FileInfo) volumefiles.Entry {
	out := volumefiles.Entry{Name: volumefiles.Shown(info.Name()), Segment: volumefiles.Segment(info.Name()),
		Kind: volumefiles.Other, ModifiedAt: info.ModTime().UTC(), Mode: uint32(info.Mode().Perm())}
	switch {
	case info.Mode().IsRegular():
		out.Kind, out.Size = volumefiles.File, info.Size()
	case info.IsDir():
		out.Kind = volumefiles.Folder
	case info.Mode()&fs.ModeSymlink != 0:
		out.Kind = volumefiles.Link
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		out.UID, out.GID = stat.Uid, stat.Gid
	}
	return out
}

// makeFolders creates a folder and those above it, owned by the request's id. Existing ones stay as they are.
func (q *request) makeFolders(w http.ResponseWriter) error {
	made := false
	for at := 0; q.path != "" && at < len(q.path); at++ {
		next := strings.IndexByte(q.path[at:], '/')
		if next < 0 {
			next = len(q.path) - at
		}
		at += next
		switch err := q.root.Mkdir(q.path[:at], 0o755); {
		case errors.Is(err, os.ErrExist):
		case err != nil:
			return err
		default:
			made = true
			if err := q.root.Lchown(q.path[:at], q.spec.ID, q.spec.ID); err != nil {
				return err
			}
		}
	}
	info, err := q.root.Stat(inRoot(q.path))
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return refusal("FAILED_PRECONDITION", "path: %q exists and is not a folder", volumefiles.Shown(q.path))
	}
	if made {
		w.WriteHeader(http.StatusCreated)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// remove deletes a file, or a folder with all that is in it.
func (q *request) remove(w http.ResponseWriter, r *http.Request, folder bool) error {
	if q.path == "" {
		return refusal("INVALID_ARGUMENT",
			"path: the root of the volume cannot be deleted: delete what is in it, or the volume")
	}
	info, err := q.root.Lstat(q.path)
	switch {
	case err != nil:
		return err
	case info.IsDir() && !folder:
		return refusal("FAILED_PRECONDITION", "path: %q is a folder: end the address with a slash",
			volumefiles.Shown(q.path))
	case !info.IsDir() && folder:
		return refusal("FAILED_PRECONDITION", "path: %q is not a folder: leave the slash out",
			volumefiles.Shown(q.path))
	case folder && r.URL.Query().Get(volumefiles.RecursiveQuery) == "true":
		err = q.root.RemoveAll(q.path)
	default:
		err = q.root.Remove(q.path)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
