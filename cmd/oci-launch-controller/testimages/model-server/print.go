package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// manifest is the app's manifest, without what its publisher pins.
//
//go:embed manifest.json
var manifest []byte

// artifacts hold a folder for each artifact beside the image that the manifest pins: here a small model, which is
// served where an instance has no volume of weights.
//
//go:embed artifacts
var artifacts embed.FS

// published are the flags of who publishes this app: they write what is to be published, and nothing is served.
type published struct {
	manifest       bool
	artifact, into string
}

// write writes what is wanted; not ok where nothing is.
func (p published) write(out io.Writer) (ok bool, err error) {
	switch {
	case p.manifest:
		_, err = out.Write(manifest)
		return true, err
	case p.artifact == "":
		return false, nil
	case p.into == "":
		return true, fmt.Errorf("--into is missing: the folder for the files of %s", p.artifact)
	}
	files, err := fs.Sub(artifacts, "artifacts/"+p.artifact)
	if err == nil {
		_, err = fs.Stat(files, ".")
	}
	if err != nil {
		return true, fmt.Errorf("--artifact %s: the only artifact with files is weights", p.artifact)
	}
	return true, os.CopyFS(p.into, files)
}
