// Package custody keeps secret values by envelope encryption: a value is sealed with a key of its own, which a keeper
// of gocloud.dev/secrets (a local key, Vault, a cloud's key service) wraps. What is sealed is bound to what it
// belongs to: opened beside other associated data it is refused.
//
// A vault has a ring of keepers: the first wraps, all unwrap, so that one keeper takes over from another while
// everything runs. No unwrapped key is cached: once a keeper is set to refuse, nothing more is opened with it, and
// opening is rare.
package custody

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxValue bounds a value, in bytes.
const MaxValue = 64 << 10

// maxSealed bounds a sealed value as it is stored, in bytes.
const maxSealed = 256 << 10

var (
	// ErrKeeper reports that a keeper did not do what was requested: it is away, slow, or refuses.
	ErrKeeper = errors.New("the keeper of secrets did not answer as expected")
	// ErrRefused reports that a sealed value is damaged, or is not of what it was opened for.
	ErrRefused = errors.New("the sealed value is damaged, or does not belong to what it was opened for")
)

// Vault seals and opens values. It is safe for concurrent use.
type Vault struct{ ring []Keeper }

// New returns a vault with a ring of keepers: the first wraps, all unwrap.
func New(first Keeper, older ...Keeper) *Vault {
	return &Vault{ring: append([]Keeper{first}, older...)}
}

// Name is the name of the keeper that wraps.
func (v *Vault) Name() string { return v.ring[0].name }

// envelope is a sealed value as it is stored.
type envelope struct {
	Keeper string `json:"keeper"`
	Key    []byte `json:"key"`
	Nonce  []byte `json:"nonce"`
	Text   []byte `json:"text"`
}

// Seal encrypts a value of at most MaxValue for what associated names, such as "runtime_secret|ten_…|sec_…|1".
// ErrKeeper when the key cannot be wrapped.
func (v *Vault) Seal(ctx context.Context, value []byte, associated string) ([]byte, error) {
	fresh, err := v.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	return fresh.Seal(value, associated)
}

// Fresh is a new key that is wrapped already and seals one value: the keeper is called before a transaction begins, and
// what needs the transaction's rows happens inside it.
type Fresh struct {
	keeper       string
	key, wrapped []byte
}

// Prepare makes a key and has it wrapped. ErrKeeper when that fails.
func (v *Vault) Prepare(ctx context.Context) (*Fresh, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key)
	wrapped, err := v.ring[0].wrap(ctx, key)
	if err != nil {
		return nil, err
	}
	return &Fresh{keeper: v.Name(), key: key, wrapped: wrapped}, nil
}

// Keeper is the name of the keeper that wrapped the key.
func (f *Fresh) Keeper() string { return f.keeper }

// Seal encrypts a value of at most MaxValue for what associated names. It calls no keeper.
func (f *Fresh) Seal(value []byte, associated string) ([]byte, error) {
	if len(value) > MaxValue {
		return nil, fmt.Errorf("seal: %d bytes are more than %d", len(value), MaxValue)
	}
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce)
	box, err := boxOf(f.key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Keeper: f.keeper, Key: f.wrapped, Nonce: nonce,
		Text: box.Seal(nil, nonce, value, []byte(associated))}) // #nosec G407 -- the nonce was drawn just above
}

// Open decrypts what Seal returned for the same associated data. ErrRefused for anything else, ErrKeeper when the key
// cannot be unwrapped.
func (v *Vault) Open(ctx context.Context, sealed []byte, associated string) ([]byte, error) {
	e, err := read(sealed)
	if err != nil {
		return nil, err
	}
	key, err := v.unwrap(ctx, e)
	if err != nil {
		return nil, err
	}
	box, err := boxOf(key)
	if err != nil {
		return nil, ErrRefused
	}
	value, err := box.Open(nil, e.Nonce, e.Text, []byte(associated))
	if err != nil {
		return nil, ErrRefused
	}
	return value, nil
}

// Rewrap has the value's key wrapped by the first keeper; the value itself is not opened. Of one that the first keeper
// wrapped, nothing is done unless all is set, as after the keeper has rotated its own key: then changed is false.
func (v *Vault) Rewrap(ctx context.Context, sealed []byte, all bool) (out []byte, changed bool, err error) {
	e, err := read(sealed)
	if err != nil {
		return nil, false, err
	}
	if e.Keeper == v.Name() && !all {
		return sealed, false, nil
	}
	key, err := v.unwrap(ctx, e)
	if err != nil {
		return nil, false, err
	}
	if e.Key, err = v.ring[0].wrap(ctx, key); err != nil {
		return nil, false, err
	}
	e.Keeper = v.Name()
	out, err = json.Marshal(e)
	return out, true, err
}

func read(sealed []byte) (e envelope, err error) {
	if len(sealed) > maxSealed || json.Unmarshal(sealed, &e) != nil || len(e.Nonce) != 12 {
		return e, ErrRefused
	}
	return e, nil
}

// unwrap calls the keeper that the envelope names. One that is not in the ring may be there under another name, as
// after its address was written in another way, so that then all are called.
func (v *Vault) unwrap(ctx context.Context, e envelope) ([]byte, error) {
	var failed error
	for _, keeper := range v.ring {
		if keeper.name == e.Keeper {
			return keeper.unwrap(ctx, e.Key)
		}
	}
	for _, keeper := range v.ring {
		key, err := keeper.unwrap(ctx, e.Key)
		if err == nil {
			return key, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return cipher.NewGCM(block)
}
