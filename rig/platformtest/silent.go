package platformtest

import (
	"context"
	"errors"
	"sync/atomic"

	"gocloud.dev/gcerrors"
	"gocloud.dev/secrets"

	"github.com/gpuaas/app-platform/internal/custody"
)

// Silent is a keeper of secrets that does not answer, and counts how often it was called.
type Silent struct{ asked atomic.Int64 }

// Vault keeps its keys with the silent keeper.
func (s *Silent) Vault() *custody.Vault {
	return custody.New(custody.NewKeeper("silent", secrets.NewKeeper(silence{s})))
}

// Asked is how often a key was to be wrapped.
func (s *Silent) Asked() int64 { return s.asked.Load() }

var errSilent = errors.New("no answer")

// silence is the driver of a Silent.
type silence struct{ of *Silent }

func (s silence) Encrypt(context.Context, []byte) ([]byte, error) {
	s.of.asked.Add(1)
	return nil, errSilent
}

func (silence) Decrypt(context.Context, []byte) ([]byte, error) { return nil, errSilent }
func (silence) Close() error                                    { return nil }
func (silence) ErrorAs(error, any) bool                         { return false }
func (silence) ErrorCode(error) gcerrors.ErrorCode              { return gcerrors.Unknown }
