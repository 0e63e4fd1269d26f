package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gpuaas/app-platform/sdk/client"
)

// published reads at most limit bytes of what the platform gives to everybody. No credential is sent, and no redirect
// followed.
func published(ctx context.Context, server, path string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(server, "/")+path, nil)
	if err != nil {
		return nil, usageError{err}
	}
	answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are refused") }}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, limit))
}

// away is what kept something that is published from being read; wrong usage stays what it is.
func away(what string, err error) error {
	var wrong usageError
	if errors.As(err, &wrong) {
		return err
	}
	return &client.Error{Code: client.CodeUnavailable, Message: fmt.Sprintf("%s cannot be read: %v", what, err)}
}
