package masks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
)

const (
	// file is what is kept of a member, in its folder, where nothing of the member reaches.
	file = "masks"
	// maxSecret bounds a secret that is hidden, in bytes: a larger one is a file, and its lines are not secrets.
	maxSecret = 64 << 10
	// maxKept bounds the secrets of one member, in bytes and in number; the oldest are forgotten.
	maxKept, maxSecrets = 256 << 10, 256
)

// Keeper keeps the secrets of the members of one agent.
type Keeper struct {
	dir string
	key *seal.Key

	mu   sync.Mutex
	sets map[string]*kept // by member
}

// kept is what is known of one member.
type kept struct {
	secrets [][]byte
	set     *Set
}

// NewKeeper keeps below an agent's state directory.
func NewKeeper(stateDir string, key *seal.Key) *Keeper {
	return &Keeper{dir: filepath.Join(stateDir, roster.Dir), key: key, sets: map[string]*kept{}}
}

// Keep adds secrets of a member that has a folder. It returns when they are on the disk, or why they are not.
func (k *Keeper) Keep(memberID string, secrets [][]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, err := k.load(memberID)
	if err != nil {
		return err
	}
	list, added := slices.Clone(known.secrets), false
	for _, secret := range secrets {
		if len(secret) < minSecret || len(secret) > maxSecret || slices.ContainsFunc(list, func(old []byte) bool {
			return string(old) == string(secret)
		}) {
			continue
		}
		list, added = append(list, secret), true
	}
	if !added {
		return nil
	}
	list = bound(list)
	raw, err := json.Marshal(list)
	if err == nil {
		var sealed string
		if sealed, err = k.key.Seal(raw, memberID); err == nil {
			err = durable.WriteFile(k.path(memberID), []byte(sealed), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("store the values to mask: %w", err)
	}
	k.sets[memberID] = &kept{secrets: list, set: NewSet(list)}
	return nil
}

// bound drops the oldest over the bounds.
func bound(list [][]byte) [][]byte {
	total := 0
	for i := len(list) - 1; i >= 0; i-- {
		if total += len(list[i]); total > maxKept || len(list)-i > maxSecrets {
			return list[i+1:]
		}
	}
	return list
}

// Of returns what finds the secrets of a member. It fails where they cannot be read: then nothing may be shown.
func (k *Keeper) Of(memberID string) (*Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, err := k.load(memberID)
	if err != nil {
		return nil, err
	}
	return known.set, nil
}

// Hide hides a member's secrets in a text of several lines.
func (k *Keeper) Hide(memberID, text string) (string, error) {
	set, err := k.Of(memberID)
	if err != nil || text == "" {
		return "", err
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = string(set.Hide(Text{Bytes: []byte(line), Before: i == 0}))
	}
	return strings.Join(lines, "\n"), nil
}

// Forget drops what is known of a member that was removed.
func (k *Keeper) Forget(memberID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sets, memberID)
}

func (k *Keeper) path(memberID string) string { return filepath.Join(k.dir, memberID, file) }

func (k *Keeper) load(memberID string) (*kept, error) {
	if known := k.sets[memberID]; known != nil {
		return known, nil
	}
	raw, err := os.ReadFile(k.path(memberID))
	if errors.Is(err, fs.ErrNotExist) {
		return &kept{}, nil
	}
	var secrets [][]byte
	if err == nil {
		raw, err = k.key.Open(string(raw), memberID)
	}
	if err == nil {
		err = json.Unmarshal(raw, &secrets)
	}
	if err != nil {
		return nil, fmt.Errorf("read the values to mask: %w", err)
	}
	known := &kept{secrets: secrets, set: NewSet(secrets)}
	k.sets[memberID] = known
	return known, nil
}
