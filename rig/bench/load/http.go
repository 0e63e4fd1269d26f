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
	"slices"
	"strconv"
	"sync"
	"time"
)

// requestTimeout bounds one answer.
const requestTimeout = 20 * time.Second

// maxAnswer bounds an answer's body, in bytes.
const maxAnswer = 8 << 20

// Requests makes a connection's n-th request, whole, ready to be written.
type Requests func(connection, n int) []byte

// HTTP is a load on one server.
type HTTP struct {
	Address     string
	Connections int
	Requests    Requests
}

// Result is what a load came to.
type Result struct {
	Requests int
	Bytes    int
	Took     time.Duration
	P50, P99 time.Duration
}

// Rate is requests a second.
func (r Result) Rate() float64 { return float64(r.Requests) / r.Took.Seconds() }

// Run keeps every connection busy for a while. An answer other than 200 is an error.
func (h HTTP) Run(ctx context.Context, d time.Duration) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var total Result
	var delays []time.Duration
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
			total.Requests, total.Bytes, delays = total.Requests+one.Requests, total.Bytes+one.Bytes, append(delays, times...)
		})
	}
	running.Wait()
	total.Took = time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return total, err
	}
	total.P50, total.P99 = Quantile(delays, 0.5), Quantile(delays, 0.99)
	return total, nil
}

func (h HTTP) connection(ctx context.Context, number int, until time.Time) (out Result, delays []time.Duration,
	err error) {
	conn, err := net.Dial("tcp", h.Address)
	if err != nil {
		return out, nil, err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 32<<10)
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		began := time.Now()
		size, err := exchange(conn, in, h.Requests(number, n), io.Discard)
		if err != nil {
			return out, delays, err
		}
		out.Requests++
		out.Bytes += size
		delays = append(delays, time.Since(began))
	}
	return out, delays, nil
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

// exchange writes a request and copies the answer's body, which must have a length.
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

// head reads status and Content-Length; -1 when it is missing.
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
