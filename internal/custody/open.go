package custody

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"
)

// localKey is the name of the local keeper's key in the folder of keys.
const localKey = "custody.key"

// Open opens the vault whose keeper url names, as gocloud.dev/secrets reads it; empty means a key of this
// installation's own in the folder, made when it is missing.
func Open(ctx context.Context, url, dir string) (*Vault, error) {
	if url != "" {
		keeper, err := secrets.OpenKeeper(ctx, url)
		if err != nil {
			return nil, fmt.Errorf("open the secrets keeper: %w", err)
		}
		return New("url", keeper), nil
	}
	key, err := ownKey(filepath.Join(dir, localKey))
	if err != nil {
		return nil, err
	}
	return New("local", localsecrets.NewKeeper(key)), nil
}

// ownKey reads the local key, and makes it when there is none; two processes that begin at once take the same.
func ownKey(name string) (key [32]byte, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return key, fmt.Errorf("secrets key: %w", err)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, _ = rand.Read(key[:])
		return key, writeOnce(name, base64.StdEncoding.EncodeToString(key[:]))
	}
	if err != nil {
		return key, fmt.Errorf("secrets key: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) != len(key) {
		return key, fmt.Errorf("secrets key: %s does not hold 32 bytes in base64", filepath.Base(name))
	}
	return [32]byte(raw), nil
}

func writeOnce(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("secrets key: %w", err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("secrets key: %w", err)
	}
	return nil
}
