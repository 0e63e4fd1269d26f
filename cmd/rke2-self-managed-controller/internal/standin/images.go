package standin

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// BroughtPath is the list of images that a node's containerd has been given, below the data folder.
const BroughtPath = "agent/standin-images"

// importImage is ctr, as far as it imports: it takes an image layout and keeps its name.
func importImage(data string, args []string, stdin io.Reader) error {
	at := slices.Index(args, "--index-name")
	if !slices.Contains(args, "import") || at < 0 || len(args) < at+3 || args[len(args)-1] != "-" {
		return refuse("ctr (stand-in): only an import with --index-name is supported: %q", args)
	}
	found := map[string]bool{}
	for files := tar.NewReader(stdin); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		found[path.Clean(header.Name)] = true
	}
	if !found["oci-layout"] || !found["index.json"] {
		return refuse("ctr (stand-in): the input is not an image layout")
	}
	if err := os.MkdirAll(filepath.Join(data, filepath.Dir(BroughtPath)), 0o755); err != nil {
		return err
	}
	list, err := os.OpenFile(filepath.Join(data, BroughtPath), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = list.WriteString(args[at+1] + "\n")
	return errors.Join(err, list.Close())
}
