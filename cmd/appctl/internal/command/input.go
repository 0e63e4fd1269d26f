package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/client"
)

// Document builds JSON from a file and key=value pairs; nil when neither was given.
func (t *Tool) Document(flag, path string, pairs []string) ([]byte, error) {
	var base []byte
	if path != "" {
		var err error
		if base, err = t.ReadDocument(flag, path); err != nil {
			return nil, err
		}
	}
	return LaidOver(base, pairs)
}

// ReadDocument reads a JSON document from a file, or from standard input for "-".
func (t *Tool) ReadDocument(what, path string) ([]byte, error) {
	text, err := values.ReadFile(path, t.Env.Stdin)
	if err != nil {
		return nil, Usagef("%s: %w", what, err)
	}
	return InlineDocument(path, text)
}

// InlineDocument checks that a text is JSON.
func InlineDocument(name string, text []byte) ([]byte, error) {
	document, err := values.Document(name, text)
	if err != nil {
		return nil, Invalidf("%s", err)
	}
	return document, nil
}

// LaidOver returns a document with key=value pairs on top; nil without any of them.
func LaidOver(base []byte, pairs []string) ([]byte, error) {
	return LaidOverBy(nil, base, pairs)
}

// LaidOverBy is [LaidOver] by a JSON Schema: where its type is text, a value is text however it reads.
func LaidOverBy(schema, base []byte, pairs []string) ([]byte, error) {
	built, err := values.BuildBy(schema, base, pairs)
	return built, Usage(err)
}

// Published reads at most limit bytes of a document that the platform publishes for everyone. It sends no credential
// and follows no redirect.
func Published(ctx context.Context, server, path string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(server, "/")+path, nil)
	if err != nil {
		return nil, usageError{err}
	}
	refuse := func(*http.Request, []*http.Request) error { return errors.New("redirects are refused") }
	answer, err := (&http.Client{CheckRedirect: refuse}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, limit))
}

// Unavailable returns the error of a published document that could not be read; wrong usage stays what it is.
func Unavailable(what string, err error) error {
	var wrong usageError
	if errors.As(err, &wrong) {
		return err
	}
	return &client.Error{Code: client.CodeUnavailable, Message: fmt.Sprintf("%s cannot be read: %v", what, err)}
}
