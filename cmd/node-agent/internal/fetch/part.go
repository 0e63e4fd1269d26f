package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/content"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/pace"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

const (
	// maxWrong bounds how often a part with wrong bytes is fetched.
	maxWrong = 3
	// maxRefused bounds how often a part is requested that the platform refuses though it opens the delivery.
	maxRefused = 5
	// longestWait bounds the wait between two tries.
	longestWait = 15 * time.Second
	// stalled is how long a delivery may send nothing before it is requested again.
	stalled = time.Minute
	// expirySlack is how long before its end a token is not used any more.
	expirySlack = 15 * time.Second
)

func mismatch(part Descriptor) error {
	return wire.Errorf(wire.CodeDigestMismatch, "what was delivered as %s had another digest, %d times", part.Digest,
		maxWrong)
}

// refusedError is an answer other than the bytes.
type refusedError struct{ status int }

func (e refusedError) Error() string { return fmt.Sprintf("the platform answered %d", e.status) }

// away reports whether the answer may pass by itself.
func (e refusedError) away() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout
}

// ensure has the part in the cache: it was there, another task brought it, or it is fetched.
func (s *session) ensure(ctx context.Context, lease *content.Lease, part Descriptor) error {
	download, err := lease.Begin(ctx, part.Part())
	if err != nil {
		return err
	}
	if download == nil {
		s.progress(part.Size)
		return nil
	}
	defer download.Close()
	s.progress(download.Offset())
	retry := pace.New(longestWait)
	for tries := (tries{}); ; {
		before := download.Offset()
		longer, err := s.once(ctx, download, part)
		if err == nil {
			var genuine bool
			if genuine, err = s.judge(download, longer); genuine {
				return nil
			}
			err = tries.wrong(part, err)
		} else {
			err = tries.failed(ctx, part, err)
		}
		if err != nil {
			return err
		}
		if download.Offset() > before {
			retry.Reset()
			continue
		}
		s.fetcher.log.DebugContext(ctx, "part is requested again", "task_id", s.wanted.TaskID, "digest", part.Digest)
		if err := retry.Wait(ctx); err != nil {
			return err
		}
	}
}

// judge names a finished download when it is the part, and resets it when it is not.
func (s *session) judge(download *content.Download, longer bool) (genuine bool, err error) {
	came := download.Offset()
	if longer {
		err = download.Reset()
	} else {
		genuine, err = download.Finish()
	}
	if !genuine {
		s.progress(-came)
	}
	return genuine, err
}

// tries counts what went wrong with a part in ways that need not pass. Its methods give the error that ends the trying.
type tries struct{ wrongs, refusals int }

func (t *tries) wrong(part Descriptor, err error) error {
	if t.wrongs++; err == nil && t.wrongs == maxWrong {
		return mismatch(part)
	}
	return err
}

func (t *tries) failed(ctx context.Context, part Descriptor, err error) error {
	var refusal refusedError
	var coded *wire.Error
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), unavailable("%s: %v", part.Digest, err))
	case errors.As(err, new(content.WriteError)) || errors.As(err, &coded):
		return err
	case errors.As(err, &refusal) && !refusal.away():
		if t.refusals++; t.refusals == maxRefused {
			return unavailable("%s: %v, %d times", part.Digest, err, maxRefused)
		}
	}
	return nil
}

func (s *session) progress(more int64) {
	done := s.done.Add(more)
	if total := s.total.Load(); s.wanted.Progress != nil && total > 0 {
		s.wanted.Progress(done, total)
	}
}

// once requests the bytes that a part lacks, one time. No error means that the answer ended where it should; the bytes
// may still be wrong.
func (s *session) once(ctx context.Context, download *content.Download, part Descriptor) (longer bool, err error) {
	if download.Offset() == part.Size {
		return false, nil // an agent that was killed had all of it
	}
	select {
	case s.fetcher.slots <- struct{}{}:
		defer func() { <-s.fetcher.slots }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	alive := time.AfterFunc(stalled, stop)
	defer alive.Stop()
	body, err := s.ask(ctx, part, download.Offset())
	if err != nil {
		return false, err
	}
	defer body.Close()
	return download.Copy(&watched{body, alive}, func(bytes int64) {
		s.fetched.Add(bytes)
		s.progress(bytes)
	})
}

// watched puts the alarm off with all that comes.
type watched struct {
	from  io.Reader
	alarm *time.Timer
}

func (w *watched) Read(into []byte) (int, error) {
	n, err := w.from.Read(into)
	if n > 0 {
		w.alarm.Reset(stalled)
	}
	return n, err
}

// ask opens the part's bytes from offset on. A token that ended is renewed once; any other refusal opens the delivery
// again too, since the platform says there why the artifact may not be had any more.
func (s *session) ask(ctx context.Context, part Descriptor, offset int64) (io.ReadCloser, error) {
	token, err := s.renew(ctx, "")
	if err != nil {
		return nil, err
	}
	body, err := s.get(ctx, part, offset, token)
	var refusal refusedError
	if !errors.As(err, &refusal) || refusal.away() {
		return body, err
	}
	if token, err = s.renew(ctx, token); err != nil {
		return nil, err
	}
	return s.get(ctx, part, offset, token)
}

// renew gives a token that works for a while yet, and is not the stale one.
func (s *session) renew(ctx context.Context, stale string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivery.Token == "" || s.delivery.Token == stale || time.Until(s.delivery.ExpiresAt) < expirySlack {
		delivery, err := s.fetcher.open(ctx, s.wanted.TaskID)
		if err != nil {
			return "", err
		}
		s.delivery = delivery
	}
	return s.delivery.Token, nil
}

func (s *session) get(ctx context.Context, part Descriptor, offset int64, token string) (io.ReadCloser, error) {
	s.mu.Lock()
	address := s.delivery.Url + part.Digest
	s.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, unavailable("the platform gave an address that is not valid")
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", "gpuaas-node-agent")
	request.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	answer, err := s.fetcher.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", part.Digest, err)
	}
	if err := positioned(answer, offset); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

// positioned brings the answer's body to the offset: one that ignores the range is read up to there.
func positioned(answer *http.Response, offset int64) error {
	switch {
	case answer.StatusCode == http.StatusOK:
		if _, err := io.CopyN(io.Discard, answer.Body, offset); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("skip to the missing bytes: %w", err)
		}
		return nil
	case answer.StatusCode == http.StatusPartialContent && offset > 0 &&
		strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", offset)):
		return nil
	case answer.StatusCode == http.StatusPartialContent:
		return refusedError{http.StatusBadGateway} // another piece than was asked for
	}
	return refusedError{answer.StatusCode}
}
