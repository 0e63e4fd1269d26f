package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// PublishedFor is how long a reader may keep the published key set.
	PublishedFor = time.Minute
	// ReloadEvery is how often a process reads the folder of keys again.
	ReloadEvery = time.Minute
	// signsAfter is how old a key must be before it signs: by then every process has loaded it, and every copy
	// of the published set that lacks it is over.
	signsAfter = PublishedFor + ReloadEvery + time.Minute
	// maxKeyFiles bounds the keys of a folder.
	maxKeyFiles = 100
)

// nameLayout is the layout of the name of a key's file: its time of creation, in UTC.
const nameLayout = "20060102T150405"

// Keyring signs and verifies tokens. All keys of its folder are published and verify; the newest of those that
// everybody has had time to learn of signs. So a new key is put beside the old one, and the old one is taken
// away once the tokens that it signed have ended. It is safe for concurrent use.
type Keyring struct {
	issuer string
	dir    string // empty when the keys are nowhere stored
	now    func() time.Time
	loaded atomic.Pointer[keySet]
	seen   seen[payload]
	// deliveries are remembered apart: a token of one sort is never taken for one of the other.
	deliveries seen[delivered]
}

// keySet is what a ring holds at one time.
type keySet struct {
	keys   []ringKey // newest first
	signs  int       // which of them signs
	signer jose.Signer
}

// ringKey is a private key with its time of creation.
type ringKey struct {
	jose.JSONWebKey
	made time.Time
}

// KeyInfo is a key of the folder, without its secret.
type KeyInfo struct {
	// ID is the `kid`.
	ID string
	// File is the name of its file.
	File string
	// MadeAt is when it was created.
	MadeAt time.Time
	// Signs says whether it signs now; every key verifies.
	Signs bool
}

// LoadKeyring reads every *.pem of a folder (raw Ed25519 seeds, not PKCS#8) and creates a first key in an empty one.
// issuer is the platform's public address.
func LoadKeyring(dir, issuer string) (*Keyring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	ring := &Keyring{issuer: issuer, dir: dir, now: time.Now}
	if len(names) == 0 {
		if _, err := makeKey(dir, ring.now()); err != nil {
			return nil, err
		}
	}
	return ring, ring.Reload()
}

// NewKeyring makes a ring with one fresh key that is nowhere stored, for tests and tools.
func NewKeyring(issuer string) (*Keyring, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	ring := &Keyring{issuer: issuer, now: time.Now}
	return ring, ring.take([]ringKey{{webKey(private), ring.now()}})
}

// AddKey creates a new key in the folder and returns its id. Running processes load it within ReloadEvery; it signs
// once it is three minutes old.
func AddKey(dir string) (string, error) {
	if err := folderOfServers(dir); err != nil {
		return "", err
	}
	name, err := makeKey(dir, time.Now())
	if err != nil {
		return "", err
	}
	key, err := readKey(name)
	return key.KeyID, err
}

// folderOfServers refuses a folder that no server has created: a key in it would sign nothing.
func folderOfServers(dir string) error {
	if found, err := os.Stat(dir); err != nil || !found.IsDir() {
		return fmt.Errorf("signing keys: there is no folder %s: name the --keys-dir of the servers", dir)
	}
	return nil
}

// Reload reads the folder again. On failure, an empty folder too, the ring keeps what it has.
func (r *Keyring) Reload() error {
	if r.dir == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(r.dir, "*.pem"))
	if err != nil {
		return fmt.Errorf("signing keys: %w", err)
	}
	if len(names) == 0 || len(names) > maxKeyFiles {
		return fmt.Errorf("signing keys: the folder has %d keys, and may have 1 to %d", len(names), maxKeyFiles)
	}
	keys := make([]ringKey, 0, len(names))
	for i := len(names) - 1; i >= 0; i-- { // Glob sorts: the newest name first
		key, err := readKey(names[i])
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	return r.take(keys)
}

// take makes keys, newest first, what the ring holds.
func (r *Keyring) take(keys []ringKey) error {
	set := &keySet{keys: keys, signs: len(keys) - 1}
	for i, key := range keys {
		if !r.now().Before(key.made.Add(signsAfter)) {
			set.signs = i
			break
		}
	}
	options := (&jose.SignerOptions{}).WithType(tokenType)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: keys[set.signs].JSONWebKey}, options)
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	set.signer = signer
	r.loaded.Store(set)
	return nil
}

func (r *Keyring) set() *keySet { return r.loaded.Load() }

// Issuer is the platform's public address, the `iss` of every token.
func (r *Keyring) Issuer() string { return r.issuer }

// SigningKey is the key that signs now, with its id.
func (r *Keyring) SigningKey() (ed25519.PrivateKey, string) {
	set := r.set()
	key := set.keys[set.signs]
	return key.Key.(ed25519.PrivateKey), key.KeyID
}

// Public is the published key set (RFC 7517) as JSON.
func (r *Keyring) Public() ([]byte, error) {
	var published jose.JSONWebKeySet
	for _, key := range r.set().keys {
		published.Keys = append(published.Keys, key.Public())
	}
	return json.Marshal(published)
}

// PublicKeys are the public halves of all keys, newest first.
func (r *Keyring) PublicKeys() []ed25519.PublicKey {
	var all []ed25519.PublicKey
	for _, key := range r.set().keys {
		all = append(all, key.Key.(ed25519.PrivateKey).Public().(ed25519.PublicKey))
	}
	return all
}

// ListKeys reads the keys of a folder, newest first. It makes none.
func ListKeys(dir string) ([]KeyInfo, error) {
	if err := folderOfServers(dir); err != nil {
		return nil, err
	}
	ring := &Keyring{dir: dir, now: time.Now}
	if err := ring.Reload(); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.pem"))
	if err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}
	files := make(map[string]string, len(names))
	for _, name := range names {
		if key, err := readKey(name); err == nil {
			files[key.KeyID] = filepath.Base(name)
		}
	}
	set := ring.set()
	found := make([]KeyInfo, len(set.keys))
	for i, key := range set.keys {
		found[i] = KeyInfo{ID: key.KeyID, File: files[key.KeyID], MadeAt: key.made, Signs: i == set.signs}
	}
	return found, nil
}

// makeKey writes a new key; of two created in one second the later gets the next second's name.
func makeKey(dir string, now time.Time) (string, error) {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:])
	block := pem.EncodeToMemory(&pem.Block{Type: "ED25519 SEED", Bytes: seed[:]})
	for try := range maxKeyFiles {
		name := filepath.Join(dir, now.UTC().Add(time.Duration(try)*time.Second).Format(nameLayout)+".pem")
		err := writeNew(name, block)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("signing keys: %w", err)
		}
	}
	return "", fmt.Errorf("signing keys: %s has too many", dir)
}

// writeNew writes a file that must not be there yet, whole or not at all: a process that reloads meanwhile never
// reads half of it.
func writeNew(name string, content []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(name), ".key-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Link(draft.Name(), name)
	}
	return err
}

func readKey(name string) (ringKey, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return ringKey{}, fmt.Errorf("signing keys: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "ED25519 SEED" || len(block.Bytes) != ed25519.SeedSize {
		return ringKey{}, fmt.Errorf("signing keys: %s does not hold an Ed25519 seed", filepath.Base(name))
	}
	key := ringKey{JSONWebKey: webKey(ed25519.NewKeyFromSeed(block.Bytes))}
	if key.made, err = time.Parse(nameLayout, strings.TrimSuffix(filepath.Base(name), ".pem")); err != nil {
		info, err := os.Stat(name) // a name of the operator's own choosing
		if err != nil {
			return ringKey{}, fmt.Errorf("signing keys: %w", err)
		}
		key.made = info.ModTime()
	}
	return key, nil
}

func webKey(private ed25519.PrivateKey) jose.JSONWebKey {
	public := private.Public().(ed25519.PublicKey)
	return jose.JSONWebKey{
		Key: private, Algorithm: string(jose.EdDSA), Use: "sig",
		KeyID: base64.RawURLEncoding.EncodeToString(hash(string(public))[:12]),
	}
}
