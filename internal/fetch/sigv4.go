package fetch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// unsigned is sent in place of the hash of a body that a signature does not cover; a GET has no body.
const unsigned = "UNSIGNED-PAYLOAD"

// named shows a credential to the source itself, and to no host that the source redirects us to: Basic to HTTPS
// servers, AWS Signature Version 4 to object stores.
type named struct {
	inner      *guard
	kind       lifecycle.SourceKind
	region     string
	host       string
	credential Credential
}

// RoundTrip implements http.RoundTripper.
func (n *named) RoundTrip(request *http.Request) (*http.Response, error) {
	if n.credential.Secret == "" || request.URL.Host != n.host {
		return n.inner.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	if n.kind == lifecycle.SourceS3 {
		n.sign(request, time.Now())
	} else {
		request.SetBasicAuth(n.credential.User, n.credential.Secret)
	}
	return n.inner.RoundTrip(request)
}

// sign puts the signature into the request's headers. What is signed is the method, the path as it goes over the wire,
// the host and the time.
func (n *named) sign(request *http.Request, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	day := stamp[:8]
	request.URL.RawPath = escape(request.URL.Path)
	request.Header.Set("X-Amz-Date", stamp)
	request.Header.Set("X-Amz-Content-Sha256", unsigned)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{request.Method, request.URL.RawPath, "",
		"host:" + request.URL.Host, "x-amz-content-sha256:" + unsigned, "x-amz-date:" + stamp, "", signed,
		unsigned}, "\n")
	scope := day + "/" + n.region + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + n.credential.Secret)
	for _, step := range []string{day, n.region, "s3", "aws4_request"} {
		key = mac(key, step)
	}
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+n.credential.User+"/"+scope+
		", SignedHeaders="+signed+", Signature="+hex.EncodeToString(mac(key, text)))
}

func mac(key []byte, text string) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(text))
	return hash.Sum(nil)
}

// escape writes a path as object stores canonicalise it: all but unreserved characters and slashes as %XX.
func escape(path string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(path) {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			out.WriteByte(c)
		default:
			out.WriteByte('%')
			out.WriteByte(digits[c>>4])
			out.WriteByte(digits[c&15])
		}
	}
	return out.String()
}
