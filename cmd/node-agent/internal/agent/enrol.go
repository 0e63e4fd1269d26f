package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/platform"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// maxBackoff bounds the wait between tries to reach the platform.
const maxBackoff = 15 * time.Second

// errNotEnrolled is the fact that there is neither a credential nor a token to get one.
var errNotEnrolled = errors.New("the node is not enrolled: give an enrolment token by --enrol-token-file or " +
	"NODE_AGENT_ENROL_TOKEN")

// enrolToken returns the token, from its file or as the options have it; empty without one.
func (o Options) enrolToken() (string, error) {
	if o.EnrolTokenFile == "" {
		return strings.TrimSpace(o.EnrolToken), nil
	}
	raw, err := os.ReadFile(o.EnrolTokenFile)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read enrolment token: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func tokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ensureEnrolled uses the credential on the disk, or enrols, trying until the platform answers.
func (a *Agent) ensureEnrolled(ctx context.Context) error {
	known, err := loadCredentials(a.options.StateDir, a.log)
	if err != nil {
		return err
	}
	if known != nil {
		a.credentials = known
		return nil
	}
	token, err := a.options.enrolToken()
	if err != nil {
		return err
	}
	if token == "" {
		return errNotEnrolled
	}
	state, err := a.enrol(ctx, token)
	if err != nil {
		return err
	}
	a.credentials, err = newCredentials(a.options.StateDir, a.log, state)
	return err
}

// enrol repeats while the platform is away; a refusal is final.
func (a *Agent) enrol(ctx context.Context, token string) (credentialState, error) {
	input := gql.EnrolNodeInput{
		Name: a.options.Name, Address: a.options.Address, SealingKey: a.key.Public(),
		AgentVersion: a.options.Version, BootId: a.bootID, Inventory: a.declared(),
	}
	retry := pace.New(maxBackoff)
	for {
		enrolled, err := a.client.Enrol(ctx, token, input)
		if err == nil {
			a.log.InfoContext(ctx, "node enrolled", "node_id", enrolled.Node.Id, "name", enrolled.Node.Name, "expires",
				enrolled.ExpiresAt)
			return credentialState{
				NodeID: enrolled.Node.Id, Name: enrolled.Node.Name, Enrolment: tokenDigest(token),
				Current: asHeld(gql.NodeCredential{Credential: enrolled.Credential,
					ExpiresAt: enrolled.ExpiresAt}, a.now()),
			}, nil
		}
		if platform.Permanent(err) || platform.Unauthenticated(err) {
			return credentialState{}, fmt.Errorf("enrol the node: %w", err)
		}
		a.log.WarnContext(ctx, "enrolment will be tried again", "error", err)
		if err := retry.Wait(ctx); err != nil {
			return credentialState{}, err
		}
	}
}

// enrolAgain helps a node whose credential is refused, if a token is there that it was not enrolled by.
// Without one it waits for a while. Its only error is ctx's end.
func (a *Agent) enrolAgain(ctx context.Context) error {
	token, err := a.options.enrolToken()
	if err == nil && token != "" && tokenDigest(token) != a.credentials.snapshot().Enrolment {
		var state credentialState
		if state, err = a.enrol(ctx, token); err == nil {
			err = a.credentials.replace(state)
		}
		if err == nil {
			return nil
		}
	}
	if err != nil && ctx.Err() == nil {
		a.log.ErrorContext(ctx, "node not enrolled again", "error", err)
	}
	return pace.Pause(ctx, credentialCheck)
}

// keepCredential rotates the credential whenever half of its life is over, and enrols again when it
// is refused and a new token was laid down.
func (a *Agent) keepCredential(ctx context.Context) error {
	retry := pace.New(time.Minute)
	for {
		due := max(a.credentials.rotateIn(a.now()), 0)
		if err := pace.PauseOr(ctx, min(due, credentialCheck), a.credentials.lockedOut); err != nil {
			return err
		}
		if a.credentials.locked() {
			if err := a.enrolAgain(ctx); err != nil {
				return err
			}
			continue
		}
		if a.credentials.rotateIn(a.now()) > 0 {
			continue
		}
		if err := a.rotate(ctx); err != nil {
			a.log.WarnContext(ctx, "node credential not rotated; will be tried again", "error", err)
			if err := retry.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		retry.Reset()
	}
}

// credentialCheck bounds how long a change of the credential's fate goes unseen.
const credentialCheck = 10 * time.Second

// rotate gets a fresh credential and uses it at once, which ends the earlier one.
func (a *Agent) rotate(ctx context.Context) error {
	fresh, err := a.client.Rotate(ctx, a.credentials)
	if err != nil {
		return err
	}
	if err := a.credentials.add(asHeld(fresh, a.now())); err != nil {
		return err
	}
	return a.beat(ctx)
}
