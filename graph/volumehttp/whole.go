package volumehttp

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// bufferSize is how much of a file that is compared is in memory at once, in bytes.
const bufferSize = 64 << 10

// compareWhole has the node send the digest of a file that a caller reads whole and does not compare itself. A
// browser cannot: what it downloads does not pass the page, and a page that reads an answer gets no trailers. So the
// answer is compared here, and breaks off before its last bytes where they differ: no browser takes that for the file.
func (a *asked) compareWhole() {
	if a.header.Get("Range") != "" || a.header.Get(volumefiles.WantReprDigest) != "" {
		return
	}
	a.compared = true
	a.header.Set(volumefiles.WantReprDigest, volumefiles.WantSHA256)
	a.header.Set("Range", "bytes=0-") // whose answer says the size, which one with a trailer otherwise does not
}

// whole turns the answer to that range into one of the whole file, which states its size.
func (p *passage) whole(response *http.Response) error {
	if response.StatusCode == http.StatusPartialContent {
		var from, to, size int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to,
			&size); err != nil ||
			from != 0 || to != size-1 {
			return fmt.Errorf("a node answered %q where all of a file was wanted", response.Header.Get("Content-Range"))
		}
		response.StatusCode, response.Status, response.ContentLength = http.StatusOK, "", size
		response.Header.Set("Content-Length", strconv.FormatInt(size, 10))
		response.Header.Del("Content-Range")
	}
	response.Body = &comparing{bytes: bufio.NewReaderSize(response.Body, bufferSize), Closer: response.Body,
		response: response, sum: sha256.New()}
	return nil
}

// comparing is a file whose last bytes come only when the digest of all is the node's.
type comparing struct {
	io.Closer
	bytes    *bufio.Reader
	response *http.Response
	sum      hash.Hash
}

// Read implements io.Reader.
func (c *comparing) Read(p []byte) (int, error) {
	n, err := c.bytes.Read(p)
	_, _ = c.sum.Write(p[:n])
	if err == nil {
		_, err = c.bytes.Peek(1)
	}
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		given, bad := volumefiles.ParseDigest(c.response.Trailer.Get(volumefiles.ReprDigest))
		if bad == nil && given == volumefiles.Digest(c.sum.Sum(nil)) {
			return n, io.EOF
		}
		err = errors.New("what a node sent of a file does not have the digest that it gives")
	}
	return 0, err
}
