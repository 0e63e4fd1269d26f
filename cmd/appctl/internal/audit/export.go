package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/auditchain"
)

const exportHelp = `Write the audit's hash chain with its entries, and the signed checkpoints, to a file: one JSON document
a line, {"link": …} or {"checkpoint": …}. An existing export is continued from its end, also if it was
cut short or is an older one. Keep it where the platform's operators cannot change it.`

// export returns the command that writes the chain to a file, or completes one.
func export(t *command.Tool) *cobra.Command {
	var only bool
	cmd := command.Verb(t, "export FILE", "Write the audit's hash chain to a file, or continue one", written.view,
		func(ctx context.Context, args []string) (none written, err error) {
			if _, err := t.Connect(); err != nil {
				return none, err
			}
			return goOn(ctx, online{t}, args[0], only)
		})
	cmd.Long = exportHelp
	cmd.Flags().BoolVar(&only, "checkpoints", false, "only the checkpoints")
	return cmd
}

// written is how much was added to a file.
type written struct {
	path               string
	links, checkpoints int
}

func (w written) view() command.View {
	text := fmt.Sprintf("%s: added %s and %s", w.path, render.Plural(w.links, "link"),
		render.Plural(w.checkpoints, "checkpoint"))
	return command.Line(map[string]any{"file": w.path, "links": w.links, "checkpoints": w.checkpoints}, text)
}

// goOn writes what follows a file's last link and checkpoint. A line that was cut short is written again.
func goOn(ctx context.Context, from online, path string, only bool) (out written, err error) {
	link, checkpoint, size, err := standing(path)
	if err != nil {
		return out, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return out, command.Usage(err)
	}
	if err := errors.Join(file.Truncate(size), seek(file, size)); err != nil {
		return out, errors.Join(err, file.Close())
	}
	out.path = path
	out.links, out.checkpoints, err = writeChain(ctx, from, file, link, checkpoint, only)
	return out, errors.Join(err, file.Sync(), file.Close())
}

func seek(file *os.File, at int64) error {
	_, err := file.Seek(at, io.SeekStart)
	return err
}

// standing returns how far a file goes: its last link and checkpoint, and where its last whole line ends.
func standing(path string) (link, checkpoint int, size int64, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, 0, nil
	}
	if err != nil {
		return 0, 0, 0, command.Usage(err)
	}
	tail, err := wholeLines(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, 0, 0, command.Usage(err)
	}
	for one, err := range exported(path).lines() {
		if err != nil {
			if tail.cut { // the last line, which is written again
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
		return 0, 0, 0, command.Usagef("%s does not end with a newline: it is not an export", path)
	}
	return link, checkpoint, tail.size, nil
}

// An ending is where a file's last whole line ends, and whether something follows it.
type ending struct {
	size int64
	cut  bool
}

// wholeLines finds where a file's last whole line ends, without reading the file into memory.
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
func writeChain(
	ctx context.Context, from online, to io.Writer, link, checkpoint int, only bool,
) (links, checkpoints int, err error) {
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
