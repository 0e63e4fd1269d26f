package custody

import (
	"context"
	"errors"

	"github.com/gpuaas/app-platform/domain/fault"
)

// ErrUnprepared leaves a transaction in which a value is to be sealed: no transaction may be open while the keeper is
// called.
var ErrUnprepared = errors.New("the keeper has to wrap a key first")

// Prepared runs an attempt without a key; when that leaves with ErrUnprepared, it has the keeper wrap a new one and
// runs the attempt again with it. The attempt authorises each time, so that only permitted callers reach the keeper.
// UNAVAILABLE when the keeper does not answer.
func (v *Vault) Prepared(ctx context.Context, attempt func(fresh *Fresh) error) error {
	err := attempt(nil)
	if !errors.Is(err, ErrUnprepared) {
		return err
	}
	fresh, err := v.Prepare(ctx)
	if err != nil {
		return Told(err)
	}
	return attempt(fresh)
}

// Told returns the error that a caller may see: UNAVAILABLE for a keeper that does not answer. A value that does not
// open is a failure of ours, and its error stays as it is.
func Told(err error) error {
	if !errors.Is(err, ErrKeeper) {
		return err
	}
	return fault.New(fault.Unavailable, "the keeper of secrets does not answer as expected; try again").Because(err)
}
