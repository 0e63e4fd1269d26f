package rootfs

import (
	"bytes"
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed etc.allow
var etcAllow string

// maxSearched bounds how much of a file of /etc is searched for credentials, in bytes; a larger one is left out.
const maxSearched = 4 << 20

// secretForms are what no file of a root may hold: a private key, and a password in an address.
var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`),
	regexp.MustCompile(`[a-z]+://[^/\s:@"']+:[^/\s@"']+@`),
}

// allowed lists the patterns of etc.allow.
func allowed() (patterns []string) {
	for line := range strings.Lines(etcAllow) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

// eachOfEtc calls visit with every file, link and folder of /etc that members get.
func (s Store) eachOfEtc(visit func(path string, info os.FileInfo) error) error {
	etc := filepath.Join(s.node(), "etc")
	for _, pattern := range allowed() {
		found, err := filepath.Glob(filepath.Join(etc, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := walkPublic(path, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func walkPublic(top string, visit func(path string, info os.FileInfo) error) error {
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return skipGone(err)
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return skipGone(err)
		case public(info) && !holdsSecret(path, info):
			return visit(path, info)
		case info.IsDir():
			return fs.SkipDir
		}
		return nil
	})
}

// holdsSecret reports whether a file's text has the form of a credential, or is too large to check.
func holdsSecret(path string, info os.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return false
	}
	if info.Size() > maxSearched {
		return true
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return true
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return false // no text
	}
	for _, form := range secretForms {
		if form.Match(raw) {
			return true
		}
	}
	return false
}

// copyEtc copies what is allowed. Folders of the node come with their mode where they are copied whole.
func (s Store) copyEtc(to string, c *copier) error {
	plain := copier{linked: nil} // settings are copied: an editor may change them in place
	return s.eachOfEtc(func(path string, info os.FileInfo) error {
		at, err := filepath.Rel(s.node(), path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, at)
		if info.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if _, err := os.Lstat(target); err == nil {
			return nil // by another pattern already
		}
		return plain.file(path, target, info)
	})
}
