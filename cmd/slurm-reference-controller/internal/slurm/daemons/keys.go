package daemons

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	masterSize   = 32
	mungeSize    = 128
	passwordSize = 24
)

// Keyring derives the secrets of all clusters from one master key, so that no cluster's secret is
// stored and a worker that is added years later still gets the right one.
type Keyring struct{ master []byte }

// OpenKeyring reads the master key in dir, and creates it when it does not exist.
func OpenKeyring(dir string) (Keyring, error) {
	path := filepath.Join(dir, "master.key")
	master, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		master = make([]byte, masterSize)
		_, _ = rand.Read(master) // never fails
		err = writeOnce(path, master)
	}
	if err != nil {
		return Keyring{}, fmt.Errorf("master key: %w", err)
	}
	if len(master) != masterSize {
		return Keyring{}, fmt.Errorf("master key: %s does not hold %d bytes", path, masterSize)
	}
	return Keyring{master: master}, nil
}

// writeOnce writes a file that must not exist yet, and syncs it to disk.
func writeOnce(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// munge returns the munge key of an instance, 128 bytes.
func (k Keyring) munge(instanceID string) ([]byte, error) {
	key, err := hkdf.Key(sha512.New, k.master, nil, "munge:"+instanceID, mungeSize)
	if err != nil {
		return nil, fmt.Errorf("derive munge key: %w", err)
	}
	return key, nil
}

// password returns the password of an instance's database, in hexadecimal.
func (k Keyring) password(instanceID string) (string, error) {
	key, err := hkdf.Key(sha512.New, k.master, nil, "database:"+instanceID, passwordSize)
	if err != nil {
		return "", fmt.Errorf("derive database password: %w", err)
	}
	return hex.EncodeToString(key), nil
}
