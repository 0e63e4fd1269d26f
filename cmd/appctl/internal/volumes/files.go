package volumes

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/lookup"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/files"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// remoteForm is how a place on a volume is written: VOLUME:PATH. What has a slash before the colon is a path of this
// machine.
var remoteForm = regexp.MustCompile(`(?s)^([a-z][a-z0-9_-]*):(.*)$`)

// place is a place on a volume.
type place struct {
	volume *files.Volume
	name   string // of the volume, as it was given
	path   string // without slashes at its ends
	folder bool   // it was given with a slash at its end, or is the volume's own folder
}

func (p place) String() string { return p.name + ":" + p.path }

// remote reads a place on a volume; not ok for a path of this machine.
func remote(ctx context.Context, t *command.Tool, given string) (place, bool, error) {
	found := remoteForm.FindStringSubmatch(given)
	if found == nil {
		return place{}, false, nil
	}
	at := place{name: found[1], path: strings.Trim(found[2], "/")}
	at.folder = at.path == "" || strings.HasSuffix(found[2], "/")
	if err := volumefiles.CheckPath(at.path); err != nil {
		return at, true, command.Usage(err)
	}
	id, err := lookup.Volume(ctx, t, found[1])
	if err != nil {
		return at, true, err
	}
	api, err := t.Connect()
	if err != nil {
		return at, true, err
	}
	at.volume = &files.Volume{Client: api, ID: id, OnRetry: func(err error) { t.Remark("trying again: %s", err) }}
	return at, true, nil
}

// onVolume reads a place that must be on a volume.
func onVolume(ctx context.Context, t *command.Tool, given string) (place, error) {
	at, ok, err := remote(ctx, t, given)
	if err == nil && !ok {
		err = command.Usagef("%q is not a place on a volume: write VOLUME:PATH", given)
	}
	return at, err
}

// isFolder reports whether there is a folder at a place: the platform refuses to read one as a file.
func (p place) isFolder(ctx context.Context) (bool, error) {
	if p.path == "" {
		return true, nil
	}
	_, err := p.volume.Stat(ctx, p.path)
	if err == nil {
		return false, nil
	}
	if client.CodeOf(err) != client.CodeFailedPrecondition {
		return false, err
	}
	for _, err := range p.volume.List(ctx, p.path) {
		return err == nil, err // a pipe is none, and says so
	}
	return true, nil
}

// maxListed bounds the entries that a command shows.
const maxListed = 10_000

func listFiles(t *command.Tool) *cobra.Command {
	return command.List(t, "ls VOLUME:[PATH]", "List a folder of a volume", entries,
		func(ctx context.Context, args []string, limit int) (out []volumefiles.Entry, err error) {
			at, err := onVolume(ctx, t, args[0])
			if err != nil {
				return nil, err
			}
			out = []volumefiles.Entry{}
			for entry, err := range at.volume.List(ctx, at.path) {
				if err != nil {
					return nil, err
				}
				if out = append(out, entry); len(out) >= min(limit, maxListed) {
					t.Remark("there may be more: see --limit")
					break
				}
			}
			return out, nil
		})
}

var entries = command.Table[volumefiles.Entry]{
	Heading: []string{"NAME", "KIND", "SIZE", "MODIFIED", "MODE", "UID"},
	Row: func(e *volumefiles.Entry) []string {
		size := ""
		if e.Kind == volumefiles.File {
			size = render.Bytes(float64(e.Size))
		}
		return []string{e.Name, e.Kind, size, render.Time(&e.ModifiedAt), fmt.Sprintf("%04o", e.Mode),
			fmt.Sprint(e.UID)}
	},
	ID: func(e *volumefiles.Entry) string { return e.Segment },
}

func removeFiles(t *command.Tool) *cobra.Command {
	var recursive bool
	cmd := t.Command("rm VOLUME:PATH", "Delete a file of a volume, or a folder with -r",
		func(ctx context.Context, args []string) error {
			at, err := onVolume(ctx, t, args[0])
			if err != nil {
				return err
			}
			if at.path == "" {
				return command.Usagef("%q is the whole volume: name what to delete in it, or see appctl volumes delete",
					args[0])
			}
			err = at.volume.Remove(ctx, at.path, at.folder, at.folder && recursive)
			if recursive && !at.folder && client.CodeOf(err) == client.CodeFailedPrecondition {
				err = at.volume.Remove(ctx, at.path, true, true)
			}
			if err == nil {
				t.Remark("deleted %s", at)
			}
			return err
		})
	cmd.Example = "  appctl volumes rm -r home:old/results"
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "delete a folder with everything in it")
	return cmd
}

// under is a path below a folder's; the volume's own folder has an empty path.
func under(folder, name string) string { return strings.TrimPrefix(path.Join(folder, name), "/") }
