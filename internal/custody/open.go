package custody

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"
)

// Local is the address of the local key in a list of earlier keepers.
const Local = "local"

// localKey is the name of the local keeper's key in the folder of keys.
const localKey = "custody.key"

// maxRing bounds the keepers of a vault.
const maxRing = 8

// Open opens the vault whose first keeper url names, as gocloud.dev/secrets reads it; empty or Local means a key of
// this installation's own in the folder, created when it is missing. Those of previous still unwrap what they wrapped.
// The schemes of Vault and of the clouds are known where the package keepers is linked in.
func Open(ctx context.Context, url, dir string, previous ...string) (*Vault, error) {
	if len(previous) >= maxRing {
		return nil, fmt.Errorf("secrets keeper: at most %d keepers", maxRing)
	}
	var ring []Keeper
	for _, address := range append([]string{url}, previous...) {
		keeper, err := open(ctx, address, dir)
		if err != nil {
			return nil, err
		}
		ring = append(ring, keeper)
	}
	return New(ring[0], ring[1:]...), nil
}

func open(ctx context.Context, address, dir string) (Keeper, error) {
	if address == "" || address == Local {
		key, err := ownKey(filepath.Join(dir, localKey))
		if err != nil {
			return Keeper{}, err
		}
		return NewKeeper(Local, localsecrets.NewKeeper(key)), nil
	}
	scheme, _, ok := strings.Cut(address, "://")
	if !ok {
		return Keeper{}, errors.New("secrets keeper: the address must be a URL such as hashivault://key")
	}
	keeper, err := secrets.OpenKeeper(ctx, address)
	if err != nil { // the address itself can hold a key, and the error repeats it
		return Keeper{}, fmt.Errorf("open the %s secrets keeper: %w", scheme,
			errors.New(strings.ReplaceAll(err.Error(), address, scheme+"://…")))
	}
	sum := sha256.Sum256([]byte(address))
	return NewKeeper(scheme+"-"+hex.EncodeToString(sum[:6]), keeper), nil
}

// ownKey reads the local key, and creates it when it is missing; processes that begin at once end with the same.
func ownKey(name string) (key [32]byte, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return key, fmt.Errorf("secrets key: %w", err)
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, _ = rand.Read(key[:])
		if err := offer(name, base64.StdEncoding.EncodeToString(key[:])); err != nil {
			return key, fmt.Errorf("secrets key: %w", err)
		}
		text, err = os.ReadFile(name) // another process may have been first
	}
	if err != nil {
		return key, fmt.Errorf("secrets key: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != len(key) {
		return key, fmt.Errorf("secrets key: %s does not hold 32 bytes in base64", filepath.Base(name))
	}
	return [32]byte(raw), nil
}

// offer puts a whole file in its place if that is free. A link takes the place, which appears with all of its content
// or not at all, so that no process reads half a key or replaces another's.
func offer(name, text string) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".custody-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text) // CreateTemp makes it readable for its owner alone
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
