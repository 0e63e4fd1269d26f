// Package custody keeps secret values by envelope encryption: a value is sealed with a key of its own, which a keeper
// of gocloud.dev/secrets (a local key, Vault, a cloud's key service) wraps. What is sealed is bound to what it
// belongs to: opened beside other associated data it is refused.
package custody

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"gocloud.dev/secrets"
)

// Vault seals and opens values with a keeper. It is safe for concurrent use.
type Vault struct {
	name   string
	keeper *secrets.Keeper
}

// New makes a vault; name tells which keeper wrapped a key, so that another can take over.
func New(name string, keeper *secrets.Keeper) *Vault { return &Vault{name: name, keeper: keeper} }

// Name is the keeper's name.
func (v *Vault) Name() string { return v.name }

// envelope is a sealed value as it is stored.
type envelope struct {
	Keeper string `json:"keeper"`
	Key    []byte `json:"key"`
	Nonce  []byte `json:"nonce"`
	Text   []byte `json:"text"`
}

// Seal encrypts a value for what associated names, such as "runtime_secret|ten_…|sec_…|1".
func (v *Vault) Seal(ctx context.Context, value []byte, associated string) ([]byte, error) {
	key := make([]byte, 32)
	nonce := make([]byte, 12)
	_, _ = rand.Read(key)
	_, _ = rand.Read(nonce)
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	wrapped, err := v.keeper.Encrypt(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("wrap a key with keeper %s: %w", v.name, err)
	}
	return json.Marshal(envelope{Keeper: v.name, Key: wrapped, Nonce: nonce, Text: box.Seal(nil, nonce, value, []byte(associated))})
}

// Open decrypts what Seal made for the same associated data.
func (v *Vault) Open(ctx context.Context, sealed []byte, associated string) ([]byte, error) {
	var e envelope
	if err := json.Unmarshal(sealed, &e); err != nil {
		return nil, errors.New("the sealed value is malformed")
	}
	key, err := v.keeper.Decrypt(ctx, e.Key)
	if err != nil {
		return nil, fmt.Errorf("unwrap a key with keeper %s: %w", v.name, err)
	}
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	value, err := box.Open(nil, e.Nonce, e.Text, []byte(associated))
	if err != nil {
		return nil, errors.New("the sealed value is not of what it was opened for")
	}
	return value, nil
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCM(block)
}
