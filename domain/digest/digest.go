// Package digest is how content is named by what it is: `sha256:` and the 64 lower-case hexadecimal digits of its
// SHA-256, as OCI registries write it.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
)

const prefix = "sha256:"

// Of is the digest of bytes.
func Of(data []byte) string {
	sum := sha256.Sum256(data)
	return prefix + hex.EncodeToString(sum[:])
}

// Sum is the digest of what was written to a SHA-256 until now.
func Sum(hasher hash.Hash) string { return prefix + hex.EncodeToString(hasher.Sum(nil)) }

// Valid says that text is a digest.
func Valid(text string) bool {
	sum, ok := strings.CutPrefix(text, prefix)
	raw, err := hex.DecodeString(sum)
	return ok && err == nil && len(raw) == sha256.Size && strings.ToLower(sum) == sum
}
