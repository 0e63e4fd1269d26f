package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

const copyHelp = `Copy a file to or from a volume, or a folder with -r. SRC or DST is a place on a volume, as
VOLUME:PATH, and the other on this machine.

An interrupted copy continues where it stopped, also if this program was killed: run the same command again, within a
day for a file that is copied to a volume. A file gets its name when it is complete and its SHA-256 is right, and then
replaces a file of that name. With -r the folder is created inside DST if DST exists; links, pipes and devices are left
out.`

// copying is one call of cp.
type copying struct {
	tool      *command.Tool
	recursive bool
	bar       *render.Progress
	skipped   int
}

func copyFiles(t *command.Tool) *cobra.Command {
	c := &copying{tool: t}
	cmd := t.Command("cp SRC DST", "Copy files to or from a volume, and continue an interrupted copy",
		func(ctx context.Context, args []string) error {
			c.bar = render.NewProgress(t.Env.Stderr, t.Env.StderrTerminal)
			err := c.copy(ctx, args[0], args[1])
			c.bar.Done()
			if c.skipped > 0 {
				t.Remark("%d links, pipes or devices were left out", c.skipped)
			}
			return err
		})
	cmd.Long = copyHelp
	cmd.Example = "  appctl volumes cp -r dataset home:data/\n  appctl volumes cp home:results/run-1.csv ."
	cmd.Flags().BoolVarP(&c.recursive, "recursive", "r", false, "copy a folder with everything in it")
	return cmd
}

func (c *copying) copy(ctx context.Context, src, dst string) error {
	from, out, err := remote(ctx, c.tool, src)
	if err != nil {
		return err
	}
	to, in, err := remote(ctx, c.tool, dst)
	switch {
	case err != nil:
		return err
	case in == out:
		return command.Usagef("one of SRC and DST must be a place on a volume, as VOLUME:PATH, and the other on this " +
			"machine")
	case out:
		return c.out(ctx, from, dst)
	default:
		return c.in(ctx, src, to)
	}
}

// in copies to a volume.
func (c *copying) in(ctx context.Context, src string, to place) error {
	info, err := os.Stat(src)
	if err != nil {
		return command.Usage(err)
	}
	folder, err := to.isFolder(ctx)
	if client.CodeOf(err) == client.CodeNotFound {
		folder, err = false, nil
		if to.folder && !info.IsDir() {
			return command.NotFoundf("there is no folder %s", to)
		}
	}
	if err != nil {
		return err
	}
	if folder {
		absolute, err := filepath.Abs(src)
		if err != nil {
			return err
		}
		to.path = under(to.path, filepath.Base(absolute))
	}
	if !info.IsDir() {
		return c.upload(ctx, src, to)
	}
	if !c.recursive {
		return command.Usagef("%s is a folder: copy it with -r", src)
	}
	return c.inAll(ctx, src, to)
}

// inAll copies a folder to a volume. One that is named by a link is the link's.
func (c *copying) inAll(ctx context.Context, src string, to place) error {
	src, err := filepath.EvalSymlinks(src)
	if err != nil {
		return err
	}
	return filepath.WalkDir(src, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(src, name)
		if err != nil {
			return err
		}
		at := to
		at.path = under(to.path, filepath.ToSlash(below))
		switch {
		case entry.IsDir():
			return at.volume.MakeFolder(ctx, at.path)
		case entry.Type().IsRegular():
			return c.upload(ctx, name, at)
		}
		c.skipped++
		return nil
	})
}

func (c *copying) upload(ctx context.Context, src string, to place) error {
	file, err := os.Open(filepath.Clean(src))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return command.Usagef("%s is not a regular file", src)
	}
	to.volume.Progress = c.progress(src)
	if err := to.volume.Upload(ctx, file, to.path, info.Mode()); err != nil {
		return fmt.Errorf("%s: %w", src, err)
	}
	c.done(src, to.String(), info.Size())
	return nil
}

// out copies from a volume.
func (c *copying) out(ctx context.Context, from place, dst string) error {
	folder, err := from.isFolder(ctx)
	if err != nil {
		return err
	}
	if folder && !c.recursive {
		return command.Usagef("%s is a folder: copy it with -r", from)
	}
	if info, err := os.Stat(dst); err == nil && info.IsDir() {
		name := path.Base(from.path)
		if from.path == "" {
			name = from.name
		}
		dst = filepath.Join(dst, name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return command.Usage(err)
	}
	if folder {
		return c.outAll(ctx, from, dst)
	}
	return c.download(ctx, from, dst)
}

// outAll copies a folder from a volume.
func (c *copying) outAll(ctx context.Context, from place, dst string) error {
	if err := os.MkdirAll(dst, 0o750); err != nil {
		return err
	}
	for entry, err := range from.volume.List(ctx, from.path) {
		if err != nil {
			return err
		}
		name, err := url.PathUnescape(entry.Segment)
		if err != nil || !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("%s has %q, which is not a file name that this machine can have: copy it by itself, "+
				"to another name", from, name)
		}
		at, to := from, filepath.Join(dst, name)
		at.path = under(from.path, name)
		switch entry.Kind {
		case volumefiles.Folder:
			err = c.outAll(ctx, at, to)
		case volumefiles.File:
			err = c.download(ctx, at, to)
		default:
			c.skipped++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) download(ctx context.Context, from place, dst string) error {
	from.volume.Progress = c.progress(from.String())
	if err := from.volume.Download(ctx, from.path, dst); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	info, err := os.Stat(dst)
	if err != nil {
		return err
	}
	c.done(from.String(), dst, info.Size())
	return nil
}

// progress shows how much of a file is there: a bar on a terminal, elsewhere a line every ten seconds.
func (c *copying) progress(name string) func(done, total int64) {
	every := 10 * time.Second
	if c.tool.Env.StderrTerminal {
		every = 100 * time.Millisecond
	}
	last := time.Now()
	return func(done, total int64) {
		if c.tool.Quiet || c.tool.AsJSON() || total == 0 || time.Since(last) < every {
			return
		}
		last = time.Now()
		c.bar.Show("COPYING", int(100*done/total), name, render.Bytes(float64(done))+" of "+
			render.Bytes(float64(total)))
	}
}

func (c *copying) done(from, to string, size int64) {
	if !c.tool.Quiet && !c.tool.AsJSON() {
		c.bar.Note(fmt.Sprintf("%s -> %s, %s, verified", from, to, render.Bytes(float64(size))))
	}
}
