// Package keys keeps the private keys that an installation signs with, in files of its folder.
package keys

import (
	"crypto"
	"errors"
	"os"

	"github.com/gpuaas/app-platform/sdk/signing"
)

// Kept returns the private key in a file, and creates one of the algorithm when the file does not exist.
func Kept(file, algorithm string) (crypto.Signer, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- in the installation's own folder
	if err == nil {
		return signing.ParsePrivate(text)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key, err := signing.NewKey(algorithm)
	if err != nil {
		return nil, err
	}
	if text, err = signing.EncodePrivate(key); err != nil {
		return nil, err
	}
	return key, os.WriteFile(file, text, 0o600)
}
