// Package volumefiles is how files of volumes are named and described on their way between a client, the platform and
// the agent of a node: the addresses, the headers, a folder's list, and the request to an agent.
//
//	GET    /v1/volumes/VOLUME/files/a/b    the bytes of a file; Range and If-Range, and the digest where it is wanted
//	GET    /v1/volumes/VOLUME/files/a/     a page of a folder's entries, as JSON
//	HEAD   /v1/volumes/VOLUME/files/a/b    size and ETag; with an upload's digest, how much of it is there
//	PUT    /v1/volumes/VOLUME/files/a/b    a file, or a part of one by Content-Range
//	PUT    /v1/volumes/VOLUME/files/a/     a folder, with those above it
//	DELETE /v1/volumes/VOLUME/files/a/b    a file; a folder by the slash at its end, with all in it by ?recursive=true
//
// A name is bytes without a slash, percent-encoded in the address; it need not be UTF-8.
package volumefiles

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the kind of a stream for one HTTP request to an agent about the files of a volume; its Spec is a Spec.
const Kind = "volume-files"

// Prefix begins the path of each address.
const Prefix = "/v1/volumes/"

// UploadsFolder is the folder in a volume's root where parts of files wait. It is the platform's, and has no address.
const UploadsFolder = ".app-platform-uploads"

// The bounds of names and lists.
const (
	// MaxName bounds a name, and MaxPath a whole path, in bytes.
	MaxName, MaxPath = 255, 4_000
	// MaxEntries is the most entries of a page, and DefaultEntries how many it has when the query says nothing.
	MaxEntries, DefaultEntries = 1_000, 200
)

// Headers that are not of HTTP itself.
const (
	// ReprDigest is the digest of a whole file (RFC 9530): of an upload before its bytes, of a download in the trailer.
	ReprDigest = "Repr-Digest"
	// WantReprDigest requests that trailer; the value is WantSHA256.
	WantReprDigest, WantSHA256 = "Want-Repr-Digest", "sha-256=10"
	// UploadOffset is how many bytes of an upload have arrived.
	UploadOffset = "Upload-Offset"
	// UploadLength is the size of the complete file of an upload, where no Content-Range states it.
	UploadLength = "Upload-Length"
)

// Query parameters.
const (
	// AfterQuery is the cursor of a list and FirstQuery how many entries its page has at most.
	AfterQuery, FirstQuery = "after", "first"
	// RecursiveQuery deletes a folder with all in it, as "true".
	RecursiveQuery = "recursive"
	// ModeQuery are the permission bits that an uploaded file is given, octal; 644 when it is left out.
	ModeQuery = "mode"
)

// Spec is the part of a request to an agent that the platform states; no caller can set it.
type Spec struct {
	// Volume, Storage and SizeBytes are the volume, as a member's binding has them.
	Volume  string `json:"volume"`
	Storage string `json:"storage"`
	// Tenant is the owner of the volume: a node shares its concurrent requests among tenants.
	Tenant    string `json:"tenant,omitempty"`
	SizeBytes int64  `json:"sizeBytes"`
	// Write allows requests that change files.
	Write bool `json:"write"`
	// ID is the user and group that what is written belongs to, on the volume; 0 for root.
	ID int `json:"id"`
}

// Failure is an agent's refusal, with a code of the platform's catalogue.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// What an entry of a folder is.
const (
	File   = "FILE"
	Folder = "FOLDER"
	Link   = "LINK"
	Other  = "OTHER"
)

// Entry is something in a folder.
type Entry struct {
	// Name is for people: what is not UTF-8 in it is shown as U+FFFD.
	Name string `json:"name"`
	// Segment is the name as it is in an address, percent-encoded. It loses nothing.
	Segment string `json:"segment"`
	// Kind is FILE, FOLDER, LINK or OTHER; the last are pipes, devices and sockets.
	Kind string `json:"kind"`
	// Size is in bytes, of files.
	Size int64 `json:"size"`
	// ModifiedAt is when its bytes last changed.
	ModifiedAt time.Time `json:"modifiedAt"`
	// Mode are the permission bits.
	Mode uint32 `json:"mode"`
	// UID and GID are the ids on the volume.
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// Page is part of a folder, by the bytes of the names.
type Page struct {
	Entries []Entry `json:"entries"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next"`
}

// Cursor is the cursor behind a name.
func Cursor(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// ParseCursor reads the name that a cursor is behind.
func ParseCursor(cursor string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) > MaxName {
		return "", errors.New("after: it is not a cursor of this list: leave it out to start again")
	}
	return string(raw), nil
}

// Segment percent-encodes a name. url.PathEscape would let "." and ".." pass, which no name is.
func Segment(name string) string { return url.PathEscape(name) }

// Shown is a name for people.
func Shown(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// Address is the path of an address, percent-encoded. A folder's ends with a slash; the empty path is the root.
func Address(volume, path string, folder bool) string {
	out := Prefix + url.PathEscape(volume) + "/files/"
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = Segment(part)
	}
	if path != "" {
		out += strings.Join(parts, "/")
		if folder {
			out += "/"
		}
	}
	return out
}

// ParseAddress reads the volume and the path from the percent-encoded path of an address. A folder's path ends without
// its slash; the root's is empty.
func ParseAddress(escaped string) (volume, path string, folder bool, err error) {
	volume, rest, found := strings.Cut(strings.TrimPrefix(escaped, Prefix), "/files/")
	if !found || !strings.HasPrefix(escaped, Prefix) || strings.Contains(volume, "/") {
		return "", "", false, fmt.Errorf("the address is not of the form %sVOLUME/files/PATH", Prefix)
	}
	if volume, err = url.PathUnescape(volume); err != nil {
		return "", "", false, errors.New("the volume's id is not percent-encoded as it should be")
	}
	if rest == "" {
		return volume, "", true, nil
	}
	folder = strings.HasSuffix(rest, "/")
	names := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i, segment := range names {
		if names[i], err = url.PathUnescape(segment); err != nil {
			return "", "", false, errors.New("the path is not percent-encoded as it should be")
		}
	}
	path = strings.Join(names, "/")
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return "", "", false, err
		}
	}
	return volume, path, folder, CheckPath(path)
}

// CheckName returns an error for what cannot be the name of a file.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("path: %q is not a name: write the path without empty parts and without . and .. in it", name)
	case strings.ContainsAny(name, "/\x00"):
		return errors.New("path: a name has no slash and no NUL")
	case len(name) > MaxName:
		return fmt.Errorf("path: a name has at most %d bytes", MaxName)
	}
	return nil
}

// CheckPath returns an error for a path with an invalid name in it, and for the platform's own folder.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("path: it has at most %d bytes", MaxPath)
	}
	if path == "" {
		return nil
	}
	first, _, _ := strings.Cut(path, "/")
	if first == UploadsFolder {
		return fmt.Errorf("path: %s is the platform's own folder: choose another", UploadsFolder)
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// Digest is the SHA-256 of a file.
type Digest [sha256.Size]byte

// String is the value of a ReprDigest header.
func (d Digest) String() string { return "sha-256=:" + base64.StdEncoding.EncodeToString(d[:]) + ":" }

// ParseDigest reads the value of a ReprDigest header.
func ParseDigest(value string) (out Digest, err error) {
	bad := fmt.Errorf("%s: it must be sha-256=:BASE64:, the SHA-256 of the whole file", ReprDigest)
	inner, found := strings.CutPrefix(value, "sha-256=:")
	inner, closed := strings.CutSuffix(inner, ":")
	if !found || !closed || len(inner) != base64.StdEncoding.EncodedLen(len(out)) {
		return out, bad
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || len(raw) != len(out) {
		return out, bad
	}
	return Digest(raw), nil
}

// Part is which bytes of a file a request brings.
type Part struct{ From, Length, Total int64 }

// Last reports whether the file is whole with this part.
func (p Part) Last() bool { return p.From+p.Length == p.Total }

// String returns the value of a Content-Range header; an empty part states that all bytes are there.
func (p Part) String() string {
	if p.Length == 0 {
		return fmt.Sprintf("bytes */%d", p.Total)
	}
	return fmt.Sprintf("bytes %d-%d/%d", p.From, p.From+p.Length-1, p.Total)
}

// ParsePart reads which bytes a request brings from its Content-Range, or from its length when that is empty.
func ParsePart(contentRange string, length int64) (p Part, err error) {
	bad := errors.New("Content-Range: it must be `bytes FIRST-LAST/SIZE`, of as many bytes as the request has, " +
		"or `bytes */SIZE` of none")
	if length < 0 {
		return p, errors.New("Content-Length: a request must state how many bytes it sends")
	}
	if contentRange == "" {
		return Part{Length: length, Total: length}, nil
	}
	rest, found := strings.CutPrefix(contentRange, "bytes ")
	span, total, cut := strings.Cut(rest, "/")
	p.Total, err = Number(total)
	if !found || !cut || err != nil {
		return p, bad
	}
	if span == "*" {
		p.From = p.Total
		if length != 0 {
			return p, bad
		}
		return p, nil
	}
	first, last, _ := strings.Cut(span, "-")
	from, err := Number(first)
	to, err2 := Number(last)
	if err != nil || err2 != nil || to < from || to >= p.Total || to-from+1 != length {
		return p, bad
	}
	p.From, p.Length = from, length
	return p, nil
}

// Number reads a size: decimal digits alone.
func Number(text string) (int64, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%.20q is not a number of bytes", text)
	}
	return strconv.ParseInt(text, 10, 64)
}

// ParsePage reads a page, and refuses one whose entries could lead elsewhere than into their folder.
func ParsePage(raw []byte) (page Page, err error) {
	if err = json.Unmarshal(raw, &page); err != nil {
		return page, fmt.Errorf("a folder's list: %w", err)
	}
	if len(page.Entries) > MaxEntries || len(page.Next) > 2*MaxName {
		return page, errors.New("a folder's list is longer than a page may be")
	}
	for i, entry := range page.Entries {
		name, err := url.PathUnescape(entry.Segment)
		if err == nil {
			err = CheckName(name)
		}
		if err != nil {
			return page, fmt.Errorf("a folder's list: entry %d: %w", i, err)
		}
		page.Entries[i].Name, page.Entries[i].Segment = Shown(name), Segment(name)
		if page.Entries[i].Size < 0 {
			page.Entries[i].Size = 0
		}
	}
	return page, nil
}
