package files_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// random is content that no two files share.
func random(t *testing.T, size int) []byte {
	t.Helper()
	out := make([]byte, size)
	_, err := rand.Read(out)
	require.NoError(t, err)
	return out
}

func TestAFileComesInInPartsAndGoesOutInRanges(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	content := random(t, 3*mib+17)
	response, _ := g.do(http.MethodPut, "data/set/", nil)
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, "0", g.progress("data/set/x", content))
	status, offset, said := g.put("data/set/x", content, 0, mib)
	require.Equal(t, []any{http.StatusAccepted, "1048576"}, []any{status, offset}, said)
	require.NoFileExists(t, g.at("data", "set", "x"), "nobody sees a part")
	status, offset, said = g.put("data/set/x", content, 0, mib)
	require.Equal(t, []any{http.StatusConflict, "1048576"}, []any{status, offset})
	g.refused(said, "CONFLICT", "1048576 bytes of the upload are stored")
	g.restart()
	require.Equal(t, "1048576", g.progress("data/set/x", content), "also after a restart of the agent")
	status, _, said = g.put("data/set/x", content, mib, len(content))
	require.Equal(t, http.StatusCreated, status, said)
	require.Empty(t, g.uploads())
	got, err := os.ReadFile(g.at("data", "set", "x"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	for path, mode := range map[string]uint32{g.at("data"): 0o755, g.at("data", "set"): 0o755,
		g.at("data", "set", "x"): 0o644} {
		var stat unix.Stat_t
		require.NoError(t, unix.Stat(path, &stat))
		require.Equal(t, []uint32{person, person, mode}, []uint32{stat.Uid, stat.Gid, stat.Mode & 0o7777}, path)
	}

	response, body := g.do(http.MethodGet, "data/set/x", nil)
	require.True(t, string(content) == body)
	tag := response.Header.Get("ETag")
	response, body = g.do(http.MethodGet, "data/set/x", nil, "Range", "bytes=1048576-", "If-Range", tag,
		volumefiles.WantReprDigest, volumefiles.WantSHA256)
	require.Equal(t, http.StatusPartialContent, response.StatusCode)
	require.True(t, string(content[mib:]) == body)
	require.Equal(t, digest(content), response.Trailer.Get(volumefiles.ReprDigest), "of the whole file")
	require.NoError(t, os.WriteFile(g.at("data", "set", "x"), []byte("other"), 0o600))
	response, body = g.do(http.MethodGet, "data/set/x", nil, "Range", "bytes=1-", "If-Range", tag)
	require.Equal(t, []any{http.StatusOK, "other"}, []any{response.StatusCode, body}, "another file begins again")
	response, _ = g.do(http.MethodGet, "data/set/x", nil, "Range", "bytes=1-", "If-Match", tag)
	require.Equal(t, http.StatusPreconditionFailed, response.StatusCode)

	empty := []byte{}
	status, _, said = g.put("data/empty", empty, 0, 0)
	require.Equal(t, http.StatusCreated, status, said)
	response, body = g.do(http.MethodGet, "data/empty", nil, volumefiles.WantReprDigest, volumefiles.WantSHA256)
	require.Empty(t, body)
	require.Equal(t, digest(empty), response.Trailer.Get(volumefiles.ReprDigest))
}

func TestAWrongDigestLeavesNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	content := random(t, mib)
	status, _, said := g.put("x", content, 0, mib/2)
	require.Equal(t, http.StatusAccepted, status, said)
	wrong := append(bytes.Clone(content[mib/2:len(content)-1]), content[len(content)-1]^1)
	part := volumefiles.Part{From: mib / 2, Length: mib / 2, Total: mib}
	_, said = g.do(http.MethodPut, "x", bytes.NewReader(wrong), volumefiles.ReprDigest, digest(content),
		"Content-Range", part.String())
	g.refused(said, "DIGEST_MISMATCH", "nothing is kept")
	require.NoFileExists(t, g.at("x"))
	require.Empty(t, g.uploads())
	require.Equal(t, "0", g.progress("x", content))
}

func TestNoPathLeadsOutOfTheVolume(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.do(http.MethodPut, "in/", nil)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, g.at("out")))
	require.NoError(t, os.Symlink("../../../../../../../../"+outside, g.at("in", "up")))
	require.NoError(t, os.Symlink(outside+"/secret", g.at("file")))
	require.NoError(t, os.Symlink("in", g.at("inside")))
	for _, path := range []string{"out/secret", "in/up/secret", "file", "out/"} {
		_, said := g.do(http.MethodGet, path, nil)
		g.refused(said, "FAILED_PRECONDITION", "leads out of the volume")
	}
	for _, path := range []string{"out/new", "in/up/new"} {
		_, _, said := g.put(path, []byte("x"), 0, 1)
		g.refused(said, "FAILED_PRECONDITION", "leads out of the volume")
	}
	for _, path := range []string{"out/new/", "in/up/new/"} {
		_, said := g.do(http.MethodPut, path, nil)
		g.refused(said, "FAILED_PRECONDITION", "leads out of the volume")
	}
	_, said := g.do(http.MethodDelete, "out/secret", nil)
	g.refused(said, "FAILED_PRECONDITION", "leads out of the volume")
	_, _, said = g.put("file", []byte("x"), 0, 1)
	g.refused(said, "FAILED_PRECONDITION", "not a regular file")
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was written there")
	for _, address := range []string{"/v1/volumes/vol_a/files/../../etc/passwd", "/v1/volumes/vol_a/files/a/%2e%2e/b",
		"/v1/volumes/vol_a/files//etc/passwd", "/v1/volumes/vol_a/files/a%2fb", "/v1/volumes/vol_a/files/a%00b",
		"/v1/volumes/vol_b/files/a", "/v1/volumes/vol_a/files/" + volumefiles.UploadsFolder + "/x",
		"/v1/volumes/vol_a/files/" + strings.Repeat("x", 256)} {
		_, said := g.raw(http.MethodGet, address, nil)
		g.refused(said, "INVALID_ARGUMENT", "")
	}
	status, _, said := g.put("inside/x", []byte("x"), 0, 1)
	require.Equal(t, http.StatusCreated, status, said)
	require.FileExists(t, g.at("in", "x"), "a link that stays inside is followed")
	response, _ := g.do(http.MethodDelete, "out", nil)
	require.Equal(t, http.StatusNoContent, response.StatusCode, "a link itself is deleted")
	require.FileExists(t, outside+"/secret")
}

func TestPipesDevicesAndSocketsAreNotRead(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.do(http.MethodGet, "", nil)
	require.NoError(t, unix.Mkfifo(g.at("pipe"), 0o644))
	require.NoError(t, unix.Mknod(g.at("zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(socket)
	require.NoError(t, unix.Bind(socket, &unix.SockaddrUnix{Name: g.at("socket")}))
	for _, name := range []string{"pipe", "zero", "socket"} {
		_, said := g.do(http.MethodGet, name, nil)
		g.refused(said, "FAILED_PRECONDITION", "not a regular file")
		_, _, said = g.put(name, []byte("x"), 0, 1)
		g.refused(said, "FAILED_PRECONDITION", "delete it first")
	}
	_, body := g.do(http.MethodGet, "", nil)
	page, err := volumefiles.ParsePage([]byte(body))
	require.NoError(t, err)
	for _, one := range page.Entries {
		require.Equal(t, volumefiles.Other, one.Kind, one.Name)
	}
	_, said := g.do(http.MethodGet, "none", nil)
	g.refused(said, "NOT_FOUND", `"none" is not on the volume`)
	require.NoError(t, os.Mkdir(g.at("folder"), 0o755))
	_, said = g.do(http.MethodGet, "folder", nil)
	g.refused(said, "FAILED_PRECONDITION", "end the address with a slash")
	_, said = g.do(http.MethodGet, "pipe/", nil)
	g.refused(said, "FAILED_PRECONDITION", "not a folder")
}

func TestAFolderIsListedInPagesWhateverItsNames(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.do(http.MethodPut, "f/", nil)
	names := []string{"a", "b\xff\xfe", "c\nd", "e\"f", "g%41", "ä", "z"}
	for _, name := range names {
		require.NoError(t, os.WriteFile(g.at("f", name), []byte(name), 0o600))
	}
	var found []string
	for after := ""; ; {
		address := volumefiles.Address("vol_a", "f", true) + "?first=2&after=" + after
		_, body := g.raw(http.MethodGet, address, nil)
		require.True(t, json.Valid([]byte(body)), body)
		page, err := volumefiles.ParsePage([]byte(body))
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Entries), 2)
		for _, one := range page.Entries {
			_, content := g.raw(http.MethodGet, "/v1/volumes/vol_a/files/f/"+one.Segment, nil)
			found = append(found, content)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.Equal(t, []string{"a", "b\xff\xfe", "c\nd", "e\"f", "g%41", "z", "ä"}, found, "in the order of their bytes")
	for _, query := range []string{"?first=0", "?first=1001", "?first=x", "?after=%21"} {
		_, said := g.raw(http.MethodGet, volumefiles.Address("vol_a", "f", true)+query, nil)
		g.refused(said, "INVALID_ARGUMENT", "")
	}
}

func TestFilesAndFoldersAreDeleted(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.do(http.MethodPut, "a/b/", nil)
	g.put("a/b/x", []byte("x"), 0, 1)
	_, said := g.do(http.MethodDelete, "a/b", nil)
	g.refused(said, "FAILED_PRECONDITION", "end the address with a slash")
	_, said = g.do(http.MethodDelete, "a/b/", nil)
	g.refused(said, "FAILED_PRECONDITION", "is not empty")
	_, said = g.do(http.MethodDelete, "", nil)
	g.refused(said, "INVALID_ARGUMENT", "the root of the volume cannot be deleted")
	require.FileExists(t, g.at("a", "b", "x"))
	g.spec.Write = false
	_, said = g.do(http.MethodDelete, "a/b/x", nil)
	g.refused(said, "FORBIDDEN", "only for reading")
	g.spec.Write = true
	response, _ := g.raw(http.MethodDelete, volumefiles.Address("vol_a", "a", true)+"?recursive=true", nil)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.NoFileExists(t, g.at("a"))
	_, said = g.do(http.MethodDelete, "a", nil)
	g.refused(said, "NOT_FOUND", "")
}

func TestWhatIsInThePlaceOfTheUploadsIsRefused(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.do(http.MethodGet, "", nil)
	folder := g.at(volumefiles.UploadsFolder)
	outside := t.TempDir()
	for what, place := range map[string]func() error{
		"a link":          func() error { return os.Symlink(outside, folder) },
		"a file":          func() error { return os.WriteFile(folder, nil, 0o700) },
		"another's":       func() error { return errorsOf(os.Mkdir(folder, 0o700), os.Chown(folder, 5, 5)) },
		"open for others": func() error { return errorsOf(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o777)) },
	} {
		require.NoError(t, place(), what)
		_, _, said := g.put("x", []byte("x"), 0, 1)
		g.refused(said, "FAILED_PRECONDITION", "delete it or move it away")
		require.NoFileExists(t, g.at("x"), what)
		require.NoError(t, os.RemoveAll(folder))
	}
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, entries)
	content := random(t, 10)
	g.put("x", content, 0, 5)
	require.Len(t, g.uploads(), 1)
	part := g.at(volumefiles.UploadsFolder, g.uploads()[0])
	require.NoError(t, os.Link(part, g.at("stolen"))) // what is written to it would be seen, and changed
	_, _, said := g.put("x", content, 5, 10)
	g.refused(said, "CONFLICT", "")
	require.NoFileExists(t, g.at("x"))
	status, _, said := g.put("x", content, 0, 10)
	require.Equal(t, http.StatusCreated, status, said)
}

func TestAVolumeFullOfHalfUploadsTakesTheirRest(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	content := random(t, 10)
	_, offset, said := g.put("late", content, 5, 10)
	g.refused(said, "CONFLICT", "0 bytes of the upload are stored")
	require.Equal(t, "0", offset)
	require.Empty(t, g.uploads(), "what does not begin at its first byte waits nowhere")
	g.put("x", content, 0, 5)
	for i := range 999 { // of 1,000
		require.NoError(t, os.WriteFile(g.at(volumefiles.UploadsFolder, fmt.Sprintf("part-%d", i)), nil, 0o600))
	}
	_, _, said = g.put("y", content, 0, 5)
	g.refused(said, "LIMIT_EXCEEDED", "finish one")
	require.Len(t, g.uploads(), 1000)
	status, _, said := g.put("x", content, 5, 10)
	require.Equal(t, http.StatusCreated, status, said)
	require.FileExists(t, g.at("x"))
}

func errorsOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func TestHalfUploadsAreSweptAfterADay(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	content, other := random(t, 10), random(t, 10)
	g.put("x", content, 0, 5)
	g.put("y", other, 0, 5)
	require.Len(t, g.uploads(), 2)
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range g.uploads() {
		if info, err := os.Stat(g.at(volumefiles.UploadsFolder, name)); err == nil && info.Size() == 5 {
			require.NoError(t, os.Chtimes(g.at(volumefiles.UploadsFolder, name), old, old))
			break
		}
	}
	g.do(http.MethodGet, "", nil)
	require.Len(t, g.uploads(), 2, "it looked within the hour")
	g.restart()
	g.spec.Write = false
	_, said := g.do(http.MethodGet, "", nil)
	require.Len(t, g.uploads(), 1, said)
}

func TestAFullVolumeIsSaidAndAPartGoesOnWhenThereIsSpace(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.spec = volumefiles.Spec{Volume: "vol_l", Storage: "disk", SizeBytes: 32 * mib, Write: true, ID: person}
	_, _, said := g.put("huge", make([]byte, 33*mib), 0, 0)
	g.refused(said, "LIMIT_EXCEEDED", "make it larger first")
	first, second := random(t, 20*mib), random(t, 20*mib)
	status, _, said := g.put("first", first, 0, len(first))
	require.Equal(t, http.StatusCreated, status, said)
	_, _, said = g.put("second", second, 0, len(second))
	g.refused(said, "LIMIT_EXCEEDED", "bytes more, and the volume has")
	status, _, said = g.put("second", second, 0, mib)
	require.NotEqual(t, http.StatusAccepted, status, "%s: the whole is looked at", said)
	response, _ := g.do(http.MethodDelete, "first", nil)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	status, _, said = g.put("second", second, 0, len(second))
	require.Equal(t, http.StatusCreated, status, said)
}

func TestAnUploadThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	content := random(t, 2*mib)
	conn, err := g.stream()
	require.NoError(t, err)
	head := "PUT " + volumefiles.Address("vol_a", "x", false) +
		" HTTP/1.1\r\nHost: volume\r\nContent-Length: 2097152\r\n" +
		volumefiles.ReprDigest + ": " + digest(content) + "\r\n\r\n"
	_, err = conn.Write(append([]byte(head), content[:mib]...))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.progress("x", content) == "1048576" }, patience, 10*time.Millisecond)
	_, _, said := g.put("x", content, mib, len(content))
	g.refused(said, "CONFLICT", "another request uploads the same file")
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool {
		status, _, _ := g.put("x", content, mib, len(content))
		return status == http.StatusCreated
	}, patience, 10*time.Millisecond, "the lock ends with the request")
	got, err := os.ReadFile(g.at("x"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.ErrorIs(t, syscall.Access(g.at(volumefiles.UploadsFolder, "none"), 0), syscall.ENOENT)
}
