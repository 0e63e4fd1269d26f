package auditchain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The first byte of what is hashed distinguishes an entry from a link, so that neither can be passed off as the other.
const (
	leafMark = 0x00
	linkMark = 0x01
)

// Hash is a SHA-256. The zero hash precedes the first link.
type Hash [sha256.Size]byte

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Leaf is the hash of an entry's canonical form: SHA-256 of the byte 0 and the form.
func Leaf(canonical []byte) Hash {
	return sha256.Sum256(append([]byte{leafMark}, canonical...))
}

// Next is the link that follows another one: SHA-256 of the byte 1, that link and the leaf.
func Next(previous, leaf Hash) Hash {
	joined := append([]byte{linkMark}, previous[:]...)
	return sha256.Sum256(append(joined, leaf[:]...))
}

// Link is a link of the chain with its entry, as the API shows it and an export holds it.
type Link struct {
	// Seq is its place, from 1, without gaps.
	Seq   int   `json:"seq"`
	Entry Entry `json:"entry"`
	// Canonical is the entry's canonical form as the server computes it; empty when the entry is missing.
	Canonical string `json:"canonical"`
	// Leaf and Link are hashes in hexadecimal.
	Leaf     string    `json:"leaf"`
	Link     string    `json:"link"`
	SealedAt time.Time `json:"sealedAt"`
}

// Checkpoint is a signed statement of where the chain stood, as the API shows it and an export holds it.
type Checkpoint struct {
	ID        string    `json:"id"`
	Seq       int       `json:"seq"`
	Link      string    `json:"link"`
	Signature string    `json:"signature"`
	CreatedAt time.Time `json:"createdAt"`
}

// statementType is the `typ` of a checkpoint's signature: it is not to be taken for any other token.
const statementType = "audit-checkpoint+jws"

// maxSignature is the longest signature that is read, in bytes.
const maxSignature = 4 << 10

// Statement is the signed content of a checkpoint.
type Statement struct {
	Issuer string    `json:"iss"`
	Seq    int       `json:"seq"`
	Link   string    `json:"link"`
	Time   time.Time `json:"time"`
}

// Sign returns a checkpoint's signature: a JWS in compact form, EdDSA, with the key's id.
func Sign(statement Statement, key ed25519.PrivateKey, keyID string) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: keyID}},
		(&jose.SignerOptions{}).WithType(statementType))
	if err != nil {
		return "", fmt.Errorf("sign a checkpoint: %w", err)
	}
	payload, err := json.Marshal(statement)
	if err != nil {
		return "", fmt.Errorf("sign a checkpoint: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed.CompactSerialize()
}

// Read verifies a checkpoint's signature with the key that it names and returns the signed statement. It fails
// when the key is not among keys, the signature is not valid, or the statement differs from the checkpoint.
func (c Checkpoint) Read(keys jose.JSONWebKeySet) (Statement, error) {
	var said Statement
	if len(c.Signature) > maxSignature {
		return said, fmt.Errorf("the signature is longer than %d bytes", maxSignature)
	}
	signed, err := jose.ParseSignedCompact(c.Signature, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return said, fmt.Errorf("the signature cannot be read: %w", err)
	}
	header := signed.Signatures[0].Protected
	known := keys.Key(header.KeyID)
	if len(known) == 0 {
		return said, fmt.Errorf("it is signed by the key %q, which is not one of the given keys", header.KeyID)
	}
	if kind, _ := header.ExtraHeaders[jose.HeaderType].(string); kind != statementType {
		return said, fmt.Errorf("the signature is not of a checkpoint")
	}
	payload, err := signed.Verify(known[0])
	if err != nil {
		return said, fmt.Errorf("the signature is not valid")
	}
	if err := json.Unmarshal(payload, &said); err != nil {
		return said, fmt.Errorf("the signed statement cannot be read: %w", err)
	}
	if said.Seq != c.Seq || said.Link != c.Link {
		return said, fmt.Errorf("the signed statement has link %d %s, unlike the checkpoint", said.Seq, said.Link)
	}
	return said, nil
}
