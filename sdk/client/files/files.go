// Package files brings files in and out of volumes. Transfers go on where they broke off, in this process or a later
// one, and what arrives is compared by SHA-256 with what was sent.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

const (
	// maxTries is how often a transfer is tried in which no byte moves.
	maxTries = 8
	// leastDelay and mostDelay bound the wait before another try.
	leastDelay, mostDelay = 250 * time.Millisecond, 10 * time.Second
	// maxPage bounds a page of a folder, in bytes.
	maxPage = 4 << 20
)

// Volume is a volume whose files are read and written. Its fields are set before it is used.
type Volume struct {
	// Client speaks to the platform. Required.
	Client *client.Client
	// ID is the volume's id. Required.
	ID string
	// Progress is called with the bytes of a transfer that have arrived; it may be nil. It must return quickly.
	Progress func(done, total int64)
	// OnRetry is called with the error after which a request is tried again; it may be nil.
	OnRetry func(err error)
}

// Info is a file.
type Info struct {
	// Size is in bytes.
	Size int64
	// Tag is its ETag: it changes when the bytes do.
	Tag string
}

// Stat reads the size and ETag of a file. The error has the code FAILED_PRECONDITION for a folder, a pipe or a
// device, and NOT_FOUND for what does not exist.
func (v *Volume) Stat(ctx context.Context, path string) (Info, error) {
	resp, err := v.send(ctx, http.MethodHead, v.address(path, false), nil, 0, nil)
	if err != nil {
		return Info{}, v.reason(ctx, path, err)
	}
	_ = resp.Body.Close()
	return Info{Size: resp.ContentLength, Tag: resp.Header.Get("ETag")}, nil
}

// reason returns why a HEAD was refused: its answer has no body, and that of a GET of the same path gives the reason.
func (v *Volume) reason(ctx context.Context, path string, err error) error {
	if !refused(err) {
		return err
	}
	resp, why := v.send(ctx, http.MethodGet, v.address(path, false), nil, 0, http.Header{"Range": {"bytes=0-0"}})
	if why != nil {
		return why
	}
	_ = resp.Body.Close()
	return broken(errors.New("the file can be read now: try again"))
}

// refused reports whether the platform or a node has refused a request for a reason of its own.
func refused(err error) bool {
	found, ok := client.AsError(err)
	return ok && found.HTTPStatus >= http.StatusBadRequest && found.HTTPStatus < http.StatusInternalServerError &&
		found.HTTPStatus != http.StatusTooManyRequests
}

// List reads a folder, in the order of the names' bytes. An error is the last item.
func (v *Volume) List(ctx context.Context, path string) iter.Seq2[volumefiles.Entry, error] {
	return func(yield func(volumefiles.Entry, error) bool) {
		for after := ""; ; {
			query := url.Values{volumefiles.AfterQuery: {after}}
			page, err := v.page(ctx, v.address(path, true)+"?"+query.Encode())
			if err != nil {
				yield(volumefiles.Entry{}, err)
				return
			}
			for _, entry := range page.Entries {
				if !yield(entry, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}

func (v *Volume) page(ctx context.Context, address string) (page volumefiles.Page, err error) {
	err = v.tries(ctx, func() (bool, error) {
		resp, err := v.send(ctx, http.MethodGet, address, nil, 0, nil)
		if err != nil {
			return false, err
		}
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
		if err != nil {
			return false, broken(err)
		}
		page, err = volumefiles.ParsePage(raw)
		return false, err
	})
	return page, err
}

// MakeFolder creates a folder and those above it; those that exist stay.
func (v *Volume) MakeFolder(ctx context.Context, path string) error {
	return v.plain(ctx, http.MethodPut, v.address(path, true))
}

// Remove deletes a file, or a folder; recursive deletes a folder with all that is in it.
func (v *Volume) Remove(ctx context.Context, path string, folder, recursive bool) error {
	address := v.address(path, folder)
	if recursive {
		address += "?" + url.Values{volumefiles.RecursiveQuery: {"true"}}.Encode()
	}
	return v.plain(ctx, http.MethodDelete, address)
}

// plain sends a request whose answer has no body that matters.
func (v *Volume) plain(ctx context.Context, method, address string) error {
	return v.tries(ctx, func() (bool, error) {
		resp, err := v.send(ctx, method, address, nil, 0, nil)
		if err == nil {
			_ = resp.Body.Close()
		}
		return false, err
	})
}

func (v *Volume) address(path string, folder bool) string {
	return volumefiles.Address(v.ID, path, folder)
}

// send sends a request. A path that no file can have is refused here: the server would read it as another path.
func (v *Volume) send(ctx context.Context, method, address string, body io.Reader, length int64, header http.Header) (
	*http.Response, error) {
	if header == nil {
		header = http.Header{}
	}
	path, _, _ := strings.Cut(address, "?")
	if _, _, _, err := volumefiles.ParseAddress(path); err != nil {
		return nil, &client.Error{Code: client.CodeInvalidArgument, Message: err.Error()}
	}
	return v.Client.Send(ctx, method, address, body, length, header)
}

// tries runs a try until it succeeds, is refused for good, or nothing has moved for maxTries of them.
func (v *Volume) tries(ctx context.Context, try func() (moved bool, err error)) error {
	for attempt, delay := 1, leastDelay; ; attempt++ {
		moved, err := try()
		if moved {
			attempt, delay = 1, leastDelay
		}
		if err == nil || attempt >= maxTries || !passing(err) || ctx.Err() != nil {
			return err
		}
		if v.OnRetry != nil {
			v.OnRetry(err)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w; start it again, and it continues where it was", ctx.Err())
		}
		delay = min(2*delay, mostDelay)
	}
}

// passing reports whether an error is retryable.
func passing(err error) bool {
	found, ok := client.AsError(err)
	if !ok {
		return false
	}
	switch found.Code {
	case client.CodeUnavailable, client.CodeRateLimited, client.CodeNodeUnreachable, client.CodeDeadlineExceeded:
		return true
	}
	return found.Retryable
}

// broken is the error of a connection that broke off.
func broken(err error) error {
	return &client.Error{Code: client.CodeUnavailable, Message: "the connection broke off: " + err.Error(),
		Retryable: true, Err: err}
}
