package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/durable"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const credentialFile = "credential.json" // #nosec G101 -- a file's name

// held is a credential on the disk.
type held struct {
	Token     string    `json:"token"`
	IssuedAt  time.Time `json:"issuedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// credentialState is credential.json. Next is there from the moment it is received until the platform
// has taken it once; until then Current works too, so no crash in between locks the node out.
type credentialState struct {
	NodeID  string `json:"nodeId"`
	Name    string `json:"name"`
	Current held   `json:"current"`
	Next    *held  `json:"next,omitempty"`
	// Enrolment is a digest of the token that the node was enrolled by.
	Enrolment string `json:"enrolment"`
}

// credentials implements platform.Credentials on a file of mode 0600.
type credentials struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	state   credentialState
	refused string // the token that was last refused
	// renewed and lockedOut are hints, at most one of each: that a credential works again, and that none does.
	renewed   chan struct{}
	lockedOut chan struct{}
}

// loadCredentials gives nil when the node is not enrolled.
func loadCredentials(dir string, log *slog.Logger) (*credentials, error) {
	c := blankCredentials(dir, log)
	raw, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &c.state)
	}
	if err != nil {
		return nil, fmt.Errorf("read credential: %w", err)
	}
	return c, nil
}

func blankCredentials(dir string, log *slog.Logger) *credentials {
	return &credentials{
		path: filepath.Join(dir, credentialFile), log: log,
		renewed: make(chan struct{}, 1), lockedOut: make(chan struct{}, 1),
	}
}

func newCredentials(dir string, log *slog.Logger, state credentialState) (*credentials, error) {
	c := blankCredentials(dir, log)
	c.state = state
	return c, durable.WriteJSON(c.path, state)
}

// Token is the newest credential.
func (c *credentials) Token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Next != nil {
		return c.state.Next.Token
	}
	return c.state.Current.Token
}

// Accepted makes a fresh credential the only one.
func (c *credentials) Accepted(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == token {
		c.refused = ""
	}
	if c.state.Next == nil || c.state.Next.Token != token {
		return
	}
	c.state.Current, c.state.Next = *c.state.Next, nil
	c.save()
	c.log.Info("node credential rotated", "expires", c.state.Current.ExpiresAt)
	hint(c.renewed)
}

// Refused falls back to the earlier credential when the fresh one does not work.
func (c *credentials) Refused(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state.Next != nil && c.state.Next.Token == token:
		c.log.Warn("the platform refused the fresh node credential; using the earlier one")
		c.state.Next = nil
		c.save()
	case c.state.Next == nil && c.state.Current.Token == token && c.refused != token:
		c.log.Error("the platform refuses the node's credential; enrol the node again with a new token")
		c.refused = token
		hint(c.lockedOut)
	}
}

// locked reports whether the only credential is refused.
func (c *credentials) locked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Next == nil && c.refused != "" && c.refused == c.state.Current.Token
}

// add keeps a fresh credential beside the current one.
func (c *credentials) add(fresh held) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.state
	next.Next = &fresh
	if err := durable.WriteJSON(c.path, next); err != nil {
		return err
	}
	c.state = next
	return nil
}

// replace takes a new enrolment.
func (c *credentials) replace(state credentialState) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := durable.WriteJSON(c.path, state); err != nil {
		return err
	}
	c.state, c.refused = state, ""
	hint(c.renewed)
	return nil
}

// save cannot fail the call it is part of: with the older file on the disk the node is not locked out,
// since the newest credential is in it too.
func (c *credentials) save() {
	if err := durable.WriteJSON(c.path, c.state); err != nil {
		c.log.Error("node credential not stored", "error", err)
	}
}

func hint(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default:
	}
}

// rotateIn returns how long to wait before the next rotation, which is after half of the credential's life.
func (c *credentials) rotateIn(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Next != nil {
		return time.Minute
	}
	life := c.state.Current.ExpiresAt.Sub(c.state.Current.IssuedAt)
	return c.state.Current.IssuedAt.Add(life / 2).Sub(now)
}

func (c *credentials) snapshot() credentialState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func asHeld(from gql.NodeCredential, now time.Time) held {
	return held{Token: from.Credential, IssuedAt: now.UTC(), ExpiresAt: from.ExpiresAt}
}
