// Package seal opens what was sealed for this node. A sealed value is a NaCl anonymous box to the
// node's X25519 key over a JSON document that names the instance it is meant for, so that a value
// copied into another instance's task does not open.
package seal

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
)

// keyFile is the private key's name in the state directory.
const keyFile = "sealing.key"

// MaxSealed bounds a sealed value's base64 text, in bytes.
const MaxSealed = 2 << 20

// ErrInvalid is the fact that a sealed value does not open here. It never says why in detail.
var ErrInvalid = errors.New("the sealed value was not sealed for this node and instance")

// Key is the node's sealing key pair.
type Key struct{ private, public [32]byte }

// payload is what lies inside the box.
type payload struct {
	InstanceID string `json:"instanceId"`
	Value      []byte `json:"value"`
}

// LoadOrCreate reads the key from dir, or makes and stores one (mode 0600).
func LoadOrCreate(dir string) (*Key, error) {
	name := filepath.Join(dir, keyFile)
	raw, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return create(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read sealing key: %w", err)
	}
	private, err := base64.StdEncoding.DecodeString(string(raw))
	if err != nil || len(private) != 32 {
		return nil, fmt.Errorf("read sealing key: %s does not hold 32 bytes of base64", name)
	}
	return fromPrivate([32]byte(private))
}

func create(name string) (*Key, error) {
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create sealing key: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(private[:])
	if err := durable.WriteFile(name, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("store sealing key: %w", err)
	}
	return &Key{private: *private, public: *public}, nil
}

func fromPrivate(private [32]byte) (*Key, error) {
	public, err := curve25519.X25519(private[:], curve25519.Basepoint)
	if err != nil {
		return nil, fmt.Errorf("read sealing key: %w", err)
	}
	return &Key{private: private, public: [32]byte(public)}, nil
}

// Public is the public key in base64, as it is enrolled.
func (k *Key) Public() string { return base64.StdEncoding.EncodeToString(k.public[:]) }

// Seal seals a value to this node itself, for what it keeps on its own disk. Owner is what Open is given.
func (k *Key) Seal(value []byte, owner string) (string, error) {
	plain, err := json.Marshal(payload{InstanceID: owner, Value: value})
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	sealed, err := box.SealAnonymous(nil, plain, &k.public, rand.Reader)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}

// Open returns the value, or ErrInvalid when the text is not a box for this key or names another instance.
func (k *Key) Open(sealed, instanceID string) ([]byte, error) {
	if len(sealed) > MaxSealed {
		return nil, ErrInvalid
	}
	cipher, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, ErrInvalid
	}
	plain, ok := box.OpenAnonymous(nil, cipher, &k.public, &k.private)
	if !ok {
		return nil, ErrInvalid
	}
	var content payload
	if err := json.Unmarshal(plain, &content); err != nil || content.InstanceID == "" ||
		content.InstanceID != instanceID {
		return nil, ErrInvalid
	}
	return content.Value, nil
}
