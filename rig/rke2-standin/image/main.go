// Command image writes an OCI image of one static program, as a tar archive that "ctr images import" reads:
// image NAME ARCHIVE [PROGRAM].
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "image NAME ARCHIVE [PROGRAM]")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(name, archive string, programs []string) error {
	layer, err := layerOf(programs)
	if err != nil {
		return err
	}
	process := map[string]any{"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	if len(programs) > 0 {
		process["Entrypoint"] = []string{"/usr/local/bin/" + filepath.Base(programs[0])}
	}
	config := encode(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": process,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}}})
	manifest := encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{descriptor("application/vnd.oci.image.layer.v1.tar", layer)}})
	entry := descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
	entry["annotations"] = map[string]string{"io.containerd.image.name": name}
	index := encode(map[string]any{"schemaVersion": 2, "manifests": []any{entry}})

	var out bytes.Buffer
	into := tar.NewWriter(&out)
	add(into, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	add(into, "index.json", index, 0o644)
	for _, blob := range [][]byte{layer, config, manifest} {
		add(into, "blobs/sha256/"+digest(blob)[len("sha256:"):], blob, 0o644)
	}
	if err := into.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o644)
}

// layerOf is a root with the folders that programs expect, and the programs themselves.
func layerOf(programs []string) ([]byte, error) {
	var out bytes.Buffer
	into := tar.NewWriter(&out)
	for _, dir := range []string{"dev/", "etc/", "proc/", "sys/", "tmp/", "usr/", "usr/local/",
		"usr/local/bin/", "var/"} {
		if err := into.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	for _, path := range programs {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		add(into, "usr/local/bin/"+filepath.Base(path), raw, 0o755)
	}
	return out.Bytes(), into.Close()
}

// add writes a file; writing to memory does not fail.
func add(into *tar.Writer, name string, content []byte, mode int64) {
	_ = into.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))})
	_, _ = into.Write(content)
}

func encode(value any) []byte {
	raw, _ := json.Marshal(value) // what is given here always encodes
	return raw
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func descriptor(kind string, content []byte) map[string]any {
	return map[string]any{"mediaType": kind, "digest": digest(content), "size": len(content)}
}
