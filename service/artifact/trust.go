package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/internal/signature"
	"github.com/gpuaas/app-platform/service/kit/origin"
)

// The names of what lies beside a file.
const (
	bundleSuffix   = ".sigstore.json"
	detachedSuffix = ".sig"
)

// registry is a session as package signature asks it.
type registry struct{ *fetch.Session }

// Blob reads a small blob whole.
func (r registry) Blob(ctx context.Context, digest string, limit int64) ([]byte, error) {
	body, size, err := r.Session.Blob(ctx, digest, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if size > limit || int64(len(data)) > limit {
		return nil, fmt.Errorf("blob %s has more than %d bytes", digest, limit)
	}
	return data, err
}

// signatures looks for signatures of a digest by the source's keys.
func (r *reading) signatures(ctx context.Context, digest string, keys []signature.Key) (signature.Finding, error) {
	if !r.session.Ref().File() {
		found, err := signature.Image(ctx, registry{r.session}, digest, keys)
		if err != nil {
			return found, failed(ctx, "its signatures", err)
		}
		return found, nil
	}
	var beside [2][]byte
	for i, suffix := range []string{bundleSuffix, detachedSuffix} {
		if len(keys) == 0 {
			break
		}
		data, err := r.session.Beside(ctx, suffix, signature.MaxBytes)
		if err != nil && !errors.Is(err, fetch.ErrNotFound) {
			return signature.Finding{}, failed(ctx, "its signature", err)
		}
		beside[i] = data
	}
	return signature.Blob(beside[0], beside[1], digest, keys)
}

// lacking is the code of what a source's policy misses in a finding; empty when it lets the artifact through.
func lacking(policy lifecycle.SignaturePolicy, state lifecycle.SignatureState) fault.Code {
	switch {
	case state == lifecycle.SignatureVerified:
		return ""
	case state == lifecycle.SignatureUntrusted:
		return fault.SignatureUntrusted
	case policy == lifecycle.SignatureOptional:
		return ""
	case state == lifecycle.SignatureMissing:
		return fault.SignatureMissing
	}
	return fault.SignatureUntrusted // it trusts no key
}

// untrusted is the refusal for what lacking found, with a reason for every signature that does not count.
func untrusted(code fault.Code, reasons []string, path string) *fault.Fault {
	text := "the artifact has no signature, and its source requires one by a key that it trusts"
	if code == fault.SignatureUntrusted {
		text = "no signature of the artifact is by a key that its source trusts now"
	}
	refused := fault.New(code, "%s", text).At(path)
	for _, reason := range reasons {
		refused = refused.With(fault.Reason{Code: code, Message: reason, Path: path})
	}
	return refused
}

// still returns the finding by the keys that count now: the key may have ended while the artifact was read.
func still(found signature.Finding, from *origin.Source) signature.Finding {
	if found.State != lifecycle.SignatureVerified {
		return found
	}
	for _, key := range from.Keys {
		if key.ID == found.Key.ID {
			return found
		}
	}
	return signature.Finding{State: lifecycle.SignatureUntrusted,
		Reasons: []string{fmt.Sprintf("the key %.80q that signed it is not trusted any more", found.Key.Name)}}
}
