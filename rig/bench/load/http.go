// Package load drives the servers that are measured: keep-alive HTTP connections that each ask
// again as soon as they are answered, and many WebSocket subscribers on one loop. It does as little
// as can be, as it shares the machine with what it measures.
package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"
)

// requestTimeout bounds one answer.
const requestTimeout = 20 * time.Second

// maxAnswer bounds an answer's body, in bytes.
const maxAnswer = 8 << 20

// Request is one request, whole, ready to be written.
type Request struct {
	Bytes []byte
	// Writes says that it changes something.
	Writes bool
}

// Requests makes a connection's n-th request.
type Requests func(connection, n int) Request

// HTTP is a load on one server.
type HTTP struct {
	Address     string
	Connections int
	Requests    Requests
}

// Result is what a load came to.
type Result struct {
	Requests int // of which Writes wrote
	Writes   int
	Bytes    int
	Took     time.Duration
	// P50 and P99 are of the requests that read, and WriteP50 of those that wrote.
	P50, P99, WriteP50 time.Duration
}

// delays are how long each request took.
type delays struct{ reads, writes []time.Duration }

// Rate is requests a second, those that write among them.
func (r Result) Rate() float64 { return float64(r.Requests) / r.Took.Seconds() }

// Run keeps every connection busy for a while. An answer other than 200 is an error.
func (h HTTP) Run(ctx context.Context, d time.Duration) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var total Result
	var took delays
	var running sync.WaitGroup
	began := time.Now()
	for i := range h.Connections {
		running.Go(func() {
			one, times, err := h.connection(ctx, i, began.Add(d))
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total.Bytes += one
			took.reads, took.writes = append(took.reads, times.reads...), append(took.writes, times.writes...)
		})
	}
	running.Wait()
	total.Took, total.Writes = time.Since(began), len(took.writes)
	total.Requests = len(took.reads) + total.Writes
	if err := context.Cause(ctx); err != nil {
		return total, err
	}
	total.P50, total.P99 = Quantile(took.reads, 0.5), Quantile(took.reads, 0.99)
	total.WriteP50 = Quantile(took.writes, 0.5)
	return total, nil
}

// connection keeps one connection busy; it returns the answers' bytes and the delays.
func (h HTTP) connection(ctx context.Context, number int, until time.Time) (size int, took delays, err error) {
	conn, err := net.Dial("tcp", h.Address)
	if err != nil {
		return 0, took, err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 32<<10)
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		request, began := h.Requests(number, n), time.Now()
		got, err := exchange(conn, in, request.Bytes, io.Discard)
		if err != nil {
			return size, took, err
		}
		size += got
		if request.Writes {
			took.writes = append(took.writes, time.Since(began))
		} else {
			took.reads = append(took.reads, time.Since(began))
		}
	}
	return size, took, nil
}

// Once sends one request and answers the body.
func Once(address string, request []byte) ([]byte, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var body bytes.Buffer
	_, err = exchange(conn, bufio.NewReader(conn), request, &body)
	return body.Bytes(), err
}

// chunked is the length of a body that comes in chunks.
const chunked = -2

// exchange writes a request and copies the answer's body, which must have a length or come in chunks.
func exchange(conn net.Conn, in *bufio.Reader, request []byte, body io.Writer) (int, error) {
	if err := conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(request); err != nil {
		return 0, err
	}
	status, length, err := head(in)
	if err != nil {
		return 0, err
	}
	if length == chunked && status == http.StatusOK {
		return copyChunks(in, body)
	}
	if length < 0 || length > maxAnswer {
		return 0, fmt.Errorf("status %d with a body of length %d", status, length)
	}
	if status != 200 {
		text, _ := io.ReadAll(io.LimitReader(in, min(int64(length), 500)))
		return 0, fmt.Errorf("status %d: %s", status, text)
	}
	_, err = io.CopyN(body, in, int64(length))
	return length, err
}

// copyChunks copies a body in chunks, up to maxAnswer, and reads on to the next answer.
func copyChunks(in *bufio.Reader, body io.Writer) (int, error) {
	size, err := io.Copy(body, io.LimitReader(httputil.NewChunkedReader(in), maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("read an answer: %w", err)
	}
	if end, err := in.ReadSlice('\n'); err != nil || len(bytes.TrimRight(end, "\r\n")) > 0 {
		return 0, fmt.Errorf("an answer of more than %d bytes, or with trailers", maxAnswer)
	}
	return int(size), nil
}

// head reads status and Content-Length; -1 when it is missing, and chunked for a body in chunks.
func head(in *bufio.Reader) (status, length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, 0, fmt.Errorf("read an answer: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first && len(line) > 12:
			status, _ = strconv.Atoi(string(line[9:12]))
		case len(line) == 0:
			return status, length, nil
		case len(line) > 15 && bytes.EqualFold(line[:15], []byte("content-length:")):
			length, _ = strconv.Atoi(string(bytes.TrimSpace(line[15:])))
		case len(line) > 18 && bytes.EqualFold(line[:18], []byte("transfer-encoding:")):
			length = chunked
		}
	}
}

// Quantile is the q-th quantile; it sorts the values.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
