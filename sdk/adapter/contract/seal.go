package contract

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/crypto/nacl/box"
)

// SealedValue is what lies inside a sealed box. The node's agent refuses to open a box for a
// task of another instance, so that a sealed value cannot be carried from one to the other.
type SealedValue struct {
	// InstanceID is the instance the value is for.
	InstanceID string `json:"instanceId"`
	// Value is the secret.
	Value []byte `json:"value"`
}

// MaxSealed is the largest value that can be sealed, in bytes.
const MaxSealed = 256 << 10

// Seal encrypts value so that only the node with this sealing key can read it, and only for a
// task of this instance. The result is base64 and may be written down; sealing the same value
// twice gives two different texts.
func Seal(sealingKey, instanceID string, value []byte) (string, error) {
	if instanceID == "" {
		return "", errors.New("seal: instance id must not be empty")
	}
	if len(value) > MaxSealed {
		return "", fmt.Errorf("seal: value of %d bytes is larger than %d", len(value), MaxSealed)
	}
	raw, err := base64.StdEncoding.DecodeString(sealingKey)
	if err != nil || len(raw) != 32 {
		return "", errors.New("seal: sealing key is not the base64 of 32 bytes")
	}
	payload, err := json.Marshal(SealedValue{InstanceID: instanceID, Value: value})
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	sealed, err := box.SealAnonymous(nil, payload, (*[32]byte)(raw), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}
