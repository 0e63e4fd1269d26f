package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/supportbundle"
)

// Bundle returns the commands on support bundles.
func Bundle(t *command.Tool) *cobra.Command {
	verify := command.Verb(t, "verify FILE",
		"Check a support bundle: every line, against its manifest and the list of fields",
		viewManifest, func(_ context.Context, args []string) (*supportbundle.Manifest, error) {
			file := t.Env.Stdin
			if args[0] != "-" {
				opened, err := os.Open(args[0])
				if err != nil {
					return nil, command.Usage(err)
				}
				defer func() { _ = opened.Close() }()
				file = opened
			}
			manifest, err := supportbundle.Verify(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", args[0], err)
			}
			return manifest, nil
		})
	verify.Long = `Check a support bundle that appctl triage --bundle has written: that no line was changed, added or
removed since, and that it contains only typed values of the fields that this version knows and messages without a
secret. It needs no server. The FILE - is standard input.`
	return command.Group("bundle", "Support bundles: what appctl triage --bundle writes", verify)
}

func viewManifest(m *supportbundle.Manifest) command.View {
	return command.Detail(m, m.About, func(p *render.Page) {
		p.Fields("Bundle", "intact", "About", m.About, "Created", m.MadeAt.Format(time.RFC3339))
		pageContent(p, m.Sections, m.LeftOut)
	})
}

// bundleFlags are those of a support bundle.
type bundleFlags struct {
	file    string
	preview bool
}

func (f *bundleFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "bundle", "",
		"write a support bundle to this new file, or to standard output for -, and show what is in it")
	cmd.Flags().BoolVar(&f.preview, "preview", false, "show what a support bundle would contain, what not, and why")
}

func (f *bundleFlags) wanted() bool { return f.preview || f.file != "" }

func (f *bundleFlags) run(ctx context.Context, t *command.Tool, id string) error {
	if f.preview {
		answer, err := gql.PreviewSupportBundle(ctx, t, id)
		if err != nil {
			return err
		}
		one := &answer.SupportBundle
		return t.Show(command.Detail(one, one.Name, func(p *render.Page) {
			p.Fields("Bundle", "not written", "About", id, "Created", render.Time(&one.MadeAt))
			pageContent(p, summaries(one.Sections), omissions(one.LeftOut))
		}))
	}
	answer, err := gql.ShowSupportBundle(ctx, t, id)
	if err != nil {
		return err
	}
	one := &answer.SupportBundle
	if _, err := supportbundle.Verify(strings.NewReader(one.Content)); err != nil {
		return fmt.Errorf("the bundle that the platform returned is not intact, and was not written: %w", err)
	}
	if f.file == "-" {
		_, err := io.WriteString(t.Env.Stdout, one.Content)
		return err
	}
	if err := writeNew(f.file, one.Content); err != nil {
		return err
	}
	return t.Show(command.Detail(map[string]any{"file": f.file, "digest": one.Digest, "sections": one.Sections,
		"leftOut": one.LeftOut}, f.file, func(p *render.Page) {
		p.Fields("Written", f.file, "Bytes", fmt.Sprint(len(one.Content)), "Digest", one.Digest)
		pageContent(p, summaries(one.Sections), omissions(one.LeftOut))
		p.Line("")
		p.Line("read it before you share it: each line is JSON; check it later with: appctl bundle verify " + f.file)
	}))
}

// writeNew writes a file that only its owner reads, and refuses to write over another.
func writeNew(path, content string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return command.Usage(err)
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Close())
}

// pageContent shows what is in a bundle and what is not.
func pageContent(p *render.Page, sections []supportbundle.Summary, leftOut []supportbundle.Omission) {
	p.Section("Contents")
	bundled.On(p, sections)
	p.Section("Left out")
	omitted.On(p, leftOut)
}

var bundled = command.Table[supportbundle.Summary]{
	Heading: []string{"SECTION", "ROWS", "FIELDS"},
	Row: func(one *supportbundle.Summary) []string {
		return []string{one.Name, fmt.Sprint(one.Rows), strings.Join(one.Fields, " ")}
	},
}

var omitted = command.Table[supportbundle.Omission]{
	Heading: []string{"WHAT", "HOW MANY", "WHY"},
	Row: func(one *supportbundle.Omission) []string {
		return []string{one.What, render.If(one.Count > 0, fmt.Sprint(one.Count)), one.Why}
	},
}

func summaries(given []gql.BundleSection) []supportbundle.Summary {
	all := make([]supportbundle.Summary, len(given))
	for i, one := range given {
		all[i] = supportbundle.Summary(one)
	}
	return all
}

func omissions(given []gql.BundleOmission) []supportbundle.Omission {
	all := make([]supportbundle.Omission, len(given))
	for i, one := range given {
		all[i] = supportbundle.Omission(one)
	}
	return all
}
