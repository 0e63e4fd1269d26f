package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/auditchain"
)

const exportHelp = `Write the audit's hash chain with its entries, and the signed checkpoints, to a file: one JSON document a line, {"link": …} or
{"checkpoint": …}. A file that is there already is gone on with where it ends, so that an export that was cut short, or one of
yesterday, is only completed. Keep it where the platform's operators cannot change it.`

func (t *tool) auditExport() *cobra.Command {
	var only bool
	export := t.command("export FILE", "Write the audit's chain to a file, or go on with one", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		return t.exportAudit(ctx, online{c}, args[0], only)
	})
	export.Long = exportHelp
	export.Flags().BoolVar(&only, "checkpoints", false, "only the checkpoints")
	return export
}

// exportAudit goes on with a file and says how much it holds.
func (t *tool) exportAudit(ctx context.Context, from online, path string, only bool) error {
	link, checkpoint, size, err := standing(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return usageError(err)
	}
	if err := errors.Join(file.Truncate(size), seek(file, size)); err != nil { // a line that was cut short is written anew
		return errors.Join(err, file.Close())
	}
	links, checkpoints, err := writeChain(ctx, from, file, link, checkpoint, only)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return t.show(view{JSON: map[string]any{"file": path, "links": links, "checkpoints": checkpoints}, Page: func(p *render.Page) {
		p.Line(fmt.Sprintf("%s: %s and %s more", path, plural(links, "link"), plural(checkpoints, "checkpoint")))
	}})
}

func seek(file *os.File, at int64) error {
	_, err := file.Seek(at, io.SeekStart)
	return err
}

// standing is how far a file goes: its last link and checkpoint, and where its last whole line ends.
func standing(path string) (link, checkpoint int, size int64, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, 0, nil
	}
	if err != nil {
		return 0, 0, 0, usageError(err)
	}
	tail, err := wholeLines(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, 0, 0, usageError(err)
	}
	for one, err := range exported(path).lines() {
		if err != nil {
			if tail.cut { // the last line, which is written anew
				return link, checkpoint, tail.size, nil
			}
			return 0, 0, 0, err
		}
		if one.Link != nil {
			link = one.Link.Seq
		} else {
			checkpoint = one.Checkpoint.Seq
		}
	}
	if tail.cut { // it happens to be whole, but for its end
		return 0, 0, 0, usagef("%s does not end with a line's end: it is no export", path)
	}
	return link, checkpoint, tail.size, nil
}

// ending is where a file's last whole line ends, and whether something follows it.
type ending struct {
	size int64
	cut  bool
}

func wholeLines(file *os.File) (out ending, err error) {
	block, at := make([]byte, 64<<10), int64(0)
	for {
		n, err := file.Read(block)
		if last := bytes.LastIndexByte(block[:n], '\n'); last >= 0 {
			out.size = at + int64(last) + 1
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			out.cut = at > out.size
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// writeChain writes what follows the last link and checkpoint of the file.
func writeChain(ctx context.Context, from online, to io.Writer, link, checkpoint int, only bool) (links, checkpoints int, err error) {
	encoder := json.NewEncoder(to)
	if !only {
		for page, err := range from.links(ctx, link) {
			if err != nil {
				return links, 0, err
			}
			for i := range page {
				if err := encoder.Encode(line{Link: &page[i]}); err != nil {
					return links, 0, err
				}
				links++
			}
		}
	}
	var more []auditchain.Checkpoint
	if more, err = from.checkpointsAfter(ctx, checkpoint); err != nil {
		return links, 0, err
	}
	for i := range more {
		if err := encoder.Encode(line{Checkpoint: &more[i]}); err != nil {
			return links, i, err
		}
	}
	return links, len(more), nil
}
