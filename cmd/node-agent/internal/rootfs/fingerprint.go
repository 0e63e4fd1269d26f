package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
)

// format is raised when the same node shall give another root.
const format = 1

// fingerprint names what the node has now: every folder of /usr by its time of change, which any installation of a file
// raises, and every file of /etc that is taken by size and time.
func (s Store) fingerprint() (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %t\n", format, s.Link)
	for _, dir := range s.trees() {
		if err := stampFolders(sum, dir); err != nil {
			return "", fmt.Errorf("root of members: %w", err)
		}
	}
	err := s.eachOfEtc(func(path string, info os.FileInfo) error {
		fmt.Fprintf(sum, "%s %d %d %d\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("root of members: %w", err)
	}
	for _, file := range []string{"etc/passwd", "etc/group"} {
		raw, err := os.ReadFile(filepath.Join(s.node(), file))
		if err != nil {
			return "", fmt.Errorf("root of members: %w", err)
		}
		sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

func stampFolders(sum hash.Hash, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return skipGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return skipGone(err)
		}
		fmt.Fprintf(sum, "%s %d\n", path, info.ModTime().UnixNano())
		return nil
	})
}
