package rke2

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

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	masterSize   = 32
	passwordSize = 32
)

// keyring derives the passwords of all clusters from one master key, so that none is stored.
type keyring struct{ master []byte }

// openKeyring reads the master key in dir, and creates it where dir has none.
func openKeyring(dir string) (keyring, error) {
	path := filepath.Join(dir, "master.key")
	master, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		master = make([]byte, masterSize)
		_, _ = rand.Read(master) // never fails
		err = writeOnce(path, master)
	}
	if err != nil {
		return keyring{}, fmt.Errorf("master key: %w", err)
	}
	if len(master) != masterSize {
		return keyring{}, fmt.Errorf("master key: %s does not hold %d bytes", path, masterSize)
	}
	return keyring{master: master}, nil
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

// password returns the password of a role, server or agent, in an instance.
func (k keyring) password(role, instanceID string) (string, error) {
	key, err := hkdf.Key(sha512.New, k.master, nil, role+":"+instanceID, passwordSize)
	if err != nil {
		return "", fmt.Errorf("derive the password of the role %s: %w", role, err)
	}
	return hex.EncodeToString(key), nil
}

// sealed is a file that only the member's node can read.
func (w work) sealed(member adapter.Member, path, content string) (adapter.WriteFile, error) {
	value, err := adapter.Seal(member.Node.SealingKey, w.Instance().ID, []byte(content))
	return adapter.WriteFile{Path: path, Mode: "0600", Sealed: value, MakeDirs: true}, err
}
