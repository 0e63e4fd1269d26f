package task

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// opener opens the secrets of one task, at the moment of their use. What it opens goes to the member's init and nowhere
// else. A runtime secret is requested once for the whole task, since it may be delivered once.
type opener struct {
	executor *Executor
	task     Task
	redeemed map[string][]byte
	opened   [][]byte
}

func (e *Executor) opener(task Task) *opener {
	return &opener{executor: e, task: task, redeemed: map[string][]byte{}}
}

// hide has what was opened masked in what the member's processes print. It is called when the member is there and
// before it gets anything.
func (o *opener) hide() error { return o.executor.Masks.Keep(o.task.MemberID, o.opened) }

// environment returns the assignments of variables.
func (o *opener) environment(ctx context.Context, env []nodetask.EnvVar) ([]string, error) {
	var assignments []string
	for i, entry := range env {
		field := fmt.Sprintf("env[%d]", i)
		value, err := o.open(ctx, field, entry.Value, entry.Sealed, entry.SecretRef)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(value, 0) >= 0 {
			return nil, invalid(field, "the value contains a NUL")
		}
		assignments = append(assignments, entry.Name+"="+string(value))
	}
	return assignments, nil
}

// content returns the bytes of a file.
func (o *opener) content(ctx context.Context, spec *nodetask.WriteFile) ([]byte, error) {
	plain := spec.Content
	if spec.ContentBase64 != nil {
		raw, err := base64.StdEncoding.DecodeString(*spec.ContentBase64)
		if err != nil {
			return nil, invalid("contentBase64", "is not base64")
		}
		text := string(raw)
		plain = &text
	}
	content, err := o.open(ctx, "content", plain, spec.Sealed, spec.SecretRef)
	if err == nil && len(content) > maxContent {
		err = invalid("content", "has %d bytes, the limit is %d", len(content), maxContent)
	}
	return content, err
}

// open returns the plain value, opens the sealed one, or takes delivery of the secret. Of the three at most one is
// given; with none the value is empty.
func (o *opener) open(ctx context.Context, field string, plain, sealed, ref *string) ([]byte, error) {
	switch {
	case sealed != nil:
		return o.unseal(field+".sealed", *sealed)
	case ref != nil:
		return o.redeem(ctx, field+".secretRef", *ref)
	case plain != nil:
		return []byte(*plain), nil
	}
	return nil, nil
}

func (o *opener) unseal(field, sealed string) ([]byte, error) {
	value, err := o.executor.Key.Open(sealed, o.task.InstanceID)
	if err != nil {
		return nil, wire.Errorf(wire.CodeSealedInvalid, "%s: %v", field, err)
	}
	o.opened = append(o.opened, value)
	return value, nil
}

// redeem takes delivery within the task's own time.
func (o *opener) redeem(ctx context.Context, field, id string) ([]byte, error) {
	if value, ok := o.redeemed[id]; ok {
		return value, nil
	}
	bounded, cancel := context.WithTimeout(ctx, o.task.Timeout)
	defer cancel()
	sealed, err := o.executor.Redeem(bounded, id)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case bounded.Err() != nil:
		return nil, wire.Errorf(wire.CodeSecretUnavailable,
			"%s: the platform did not deliver the secret within %s", field, o.task.Timeout)
	default:
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	value, err := o.unseal(field, sealed)
	if err == nil {
		o.redeemed[id] = value
	}
	return value, err
}
