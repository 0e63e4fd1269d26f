// Package scaffold writes the skeleton of an adapter: a small app that runs, its manifest, tests, and a recipe for CI.
// It passes the conformance suite as it is.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/sdk/python"
	"github.com/gpuaas/app-platform/sdk/typescript"
)

//go:embed all:files
var files embed.FS

// placeholder is the text in the files that the app's name replaces.
const placeholder = "__NAME__"

// name is what a slug of the catalog looks like.
var name = regexp.MustCompile(`^[a-z][a-z0-9-]{1,38}[a-z0-9]$`)

// Languages returns the languages of the skeletons.
func Languages() []string { return []string{"go", "python", "typescript"} }

// Options are the settings of a skeleton.
type Options struct {
	// Name is the app's slug and the adapter's name: 3 to 40 small letters, digits and hyphens.
	Name string
	// Language is one of [Languages].
	Language string
	// Dir is the folder that is created. It must not exist, or must be empty.
	Dir string
	// SDK is where the sources of the SDK are, for Go; empty means the module that go.mod names.
	SDK string
}

// Write writes a skeleton and returns its files, sorted, by their paths below the folder. It overwrites nothing.
func Write(o Options) ([]string, error) {
	switch {
	case !name.MatchString(o.Name):
		return nil, fmt.Errorf("%q is not an app's name: use 3 to 40 small letters, digits and hyphens", o.Name)
	case !slices.Contains(Languages(), o.Language):
		return nil, fmt.Errorf("there is no skeleton in %q: choose %s", o.Language, strings.Join(Languages(), ", "))
	case o.SDK != "" && o.Language != "go":
		return nil, errors.New("the SDK's sources are for Go only: in other languages the skeleton contains the kit")
	}
	if there, err := os.ReadDir(o.Dir); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("%s is not empty: choose a new folder", o.Dir)
	}
	content, err := o.content()
	if err != nil {
		return nil, err
	}
	var written []string
	for path, text := range content {
		if err := write(filepath.Join(o.Dir, path), text); err != nil {
			return nil, err
		}
		written = append(written, path)
	}
	slices.Sort(written)
	return written, nil
}

// content returns the skeleton's files by their paths.
func (o Options) content() (map[string][]byte, error) {
	content := make(map[string][]byte)
	for _, folder := range []string{"files/all", "files/" + o.Language} {
		if err := collect(files, folder, "", content); err != nil {
			return nil, err
		}
	}
	for path, text := range content {
		content[path] = []byte(strings.ReplaceAll(string(text), placeholder, o.Name))
	}
	switch {
	case o.Language == "python":
		return content, collect(python.Kit, "gpuaas_adapter", "gpuaas_adapter", content)
	case o.Language == "typescript":
		return content, collect(typescript.Kit, "src", "src/kit", content)
	case o.SDK == "":
		return content, nil
	}
	sdk, err := filepath.Abs(o.SDK)
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(sdk, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read the SDK's sources: %w", err)
	}
	content["go.sum"] = sums
	content["go.mod"] = fmt.Appendf(content["go.mod"], "\nreplace github.com/gpuaas/app-platform => %s\n", sdk)
	return content, nil
}

// collect reads a folder's files, and those of folders in it. Go sources are stored as text, so that they are not
// part of this module.
func collect(from fs.FS, folder, to string, content map[string][]byte) error {
	entries, err := fs.ReadDir(from, folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := collect(from, folder+"/"+entry.Name(), filepath.Join(to, entry.Name()), content); err != nil {
				return err
			}
			continue
		}
		text, err := fs.ReadFile(from, folder+"/"+entry.Name())
		if err != nil {
			return err
		}
		content[filepath.Join(to, strings.TrimSuffix(entry.Name(), ".txt"))] = text
	}
	return nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasSuffix(path, ".sh") {
		mode = 0o755
	}
	return os.WriteFile(path, text, mode)
}
