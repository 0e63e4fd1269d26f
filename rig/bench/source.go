package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/process"
)

// sourceRole is the child that artifacts come from.
const sourceRole process.Role = "source"

// block is the content of blobs, repeated: bytes without a pattern.
var block = func() (block [1 << 20]byte) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same bytes in every process
	for i := 0; i < len(block); i += 8 {
		binary.LittleEndian.PutUint64(block[i:], random.Uint64())
	}
	return block
}()

// blob is so many bytes, generated while they are read.
type blob struct{ at, size int64 }

// Read implements io.Reader.
func (b *blob) Read(into []byte) (int, error) {
	if b.at >= b.size {
		return 0, io.EOF
	}
	from := b.at % int64(len(block))
	n := copy(into[:min(int64(len(into)), b.size-b.at)], block[from:])
	b.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (b *blob) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return 0, errors.New("before the beginning")
	}
	b.at = offset
	return offset, nil
}

// sourceMain serves blobs of any size at /blobs/SIZE, ranges of them too. Commands: "address" and the measures.
func sourceMain(context.Context, json.RawMessage) (process.Commands, func(), error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := sizeOf(r.URL.Path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, &blob{size: size})
	})
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "source:", err)
		}
	}()
	return process.WithMeasures(process.Commands{
		"address": func(json.RawMessage) (any, error) { return listener.Addr().String(), nil },
	}), func() { _ = web.Close() }, nil
}
