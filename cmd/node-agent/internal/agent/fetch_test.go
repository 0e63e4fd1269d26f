package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crypto/sha256"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

type fetchResult struct {
	Code         string
	Digest       string
	Manifest     string
	Path         string
	Bytes        int64
	FetchedBytes int64
	Parts        int
	Cached       bool
}

func fetchTask(id, digest, path string, more ...string) gql.NodeWork {
	spec := map[string]any{"digest": digest, "path": path}
	for i := 0; i+1 < len(more); i += 2 {
		spec[more[i]] = more[i+1]
	}
	return newTask(id, "FETCH_ARTIFACT", spec)
}

// text is what a shell in the member prints.
func (r *rig) text(id, script string) string {
	r.t.Helper()
	done := r.do(shell(id, script))
	require.Equal(r.t, "SUCCEEDED", done.State, "%s: %s", done.message, done.result)
	return resultOf[runResult](r.t, done).Stdout
}

func (r *rig) inCache() []string {
	var names []string
	for _, kind := range []string{"sha256", "partial"} {
		found, err := os.ReadDir(filepath.Join(r.dir, "cache", kind))
		require.NoError(r.t, err)
		for _, one := range found {
			names = append(names, kind+"/"+one.Name())
		}
	}
	return names
}

func TestImageOfAnIndexBecomesALayoutOfThatImageAlone(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		d := newDepot(r)
		shared, other := d.layer("shared layer"), d.layer("a layer of the other image")
		wanted := d.image("its config", shared, d.layer("own layer"), shared)
		index := d.addJSON(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []any{
			madeFor(d.image("other config", shared, other), "plan9", "mips"), madeFor(wanted, "plan9", "arm"),
		}})
		digest := d.grant("tsk_a", gql.ArtifactKindImage, index)
		d.grant("tsk_b", gql.ArtifactKindImage, index)
		d.grant("tsk_c", gql.ArtifactKindImage, index)
		done := r.do(fetchTask("tsk_a", digest, "/srv/image", "platform", "plan9/arm"))
		require.Equal(t, "SUCCEEDED", done.State, done.message)
		first := resultOf[fetchResult](t, done)
		require.Equal(t, wanted["digest"], first.Manifest)
		require.Equal(t, 4, first.Parts)
		require.False(t, first.Cached)
		require.Zero(t, d.sent(other["digest"].(string)))

		layout := r.text("tsk_l", "cd "+root+
			"/srv/image; cat oci-layout; echo; cat index.json; echo; cd blobs/sha256; sha256sum *")
		lines := strings.SplitN(strings.TrimSpace(layout), "\n", 3)
		require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, lines[0])
		var listed struct{ Manifests []struct{ Digest string } }
		require.NoError(t, json.Unmarshal([]byte(lines[1]), &listed))
		require.Len(t, listed.Manifests, 1)
		require.Equal(t, wanted["digest"], listed.Manifests[0].Digest)
		sums := strings.Split(lines[2], "\n")
		require.Len(t, sums, 4)
		for _, sum := range sums {
			fields := strings.Fields(sum)
			require.Equal(t, fields[0], fields[1])
		}

		before := d.total()
		again := resultOf[fetchResult](t, r.do(fetchTask("tsk_b", digest, "/srv/again", "platform", "plan9/arm")))
		require.True(t, again.Cached)
		require.Equal(t, first.Bytes, again.Bytes)
		require.Equal(t, before, d.total(), "nothing is fetched twice")

		none := r.do(fetchTask("tsk_c", digest, "/srv/none"))
		require.Equal(t, "ARTIFACT_UNAVAILABLE", resultOf[fetchResult](t, none).Code)
		require.Contains(t, none.message, "plan9/mips, plan9/arm")
	})
}

func TestFilesAreNamedByTheirTitlesAndStayInTheFolder(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		d := newDepot(r)
		good := d.grant("tsk_a", gql.ArtifactKindOciArtifact,
			d.image("{}", titled(d.layer("weights"), "model/w.bin"), titled(d.layer("words"), "vocab.txt"),
				d.layer("untitled")))
		done := r.do(fetchTask("tsk_a", good, "/srv/model", "mode", "0640", "owner", fmt.Sprint(os.Getuid())))
		require.Equal(t, "SUCCEEDED", done.State, done.message)
		require.Equal(t, 2, resultOf[fetchResult](t, done).Parts)
		said := r.text("tsk_l", "cd "+root+
			"/srv/model; find . -type f | sort; cat model/w.bin vocab.txt; stat -c ' %a' vocab.txt")
		require.Equal(t, "./model/w.bin\n./vocab.txt\nweightswords 640\n", said)
		for i, title := range []string{"../x", "/etc/x", "a/../../x", "a//b", "."} {
			id := fmt.Sprintf("tsk_bad%d", i)
			layer := titled(d.layer("evil "+title), title)
			bad := d.grant(id, gql.ArtifactKindOciArtifact, d.image("{}", layer))
			done := r.do(fetchTask(id, bad, "/srv/bad"))
			require.Equal(t, "PATH_INVALID", resultOf[fetchResult](t, done).Code, title)
			require.Zero(t, d.sent(layer["digest"].(string)), "refused before it is fetched")
		}
		require.Equal(t, "absent\n", r.text("tsk_m", "test -e "+root+"/srv/bad || echo absent"))
	})
}

func TestLinksOfTheMemberLeadNoArtifactOutOfIt(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		outside := t.TempDir()
		d := newDepot(r)
		r.text("tsk_l", "ln -s "+outside+" "+root+"/var/out; ln -s "+outside+"/kept "+root+
			"/var/file; echo kept > "+outside+
			"/kept 2>/dev/null || true")
		require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), []byte("kept\n"), 0o644))
		blob := d.layer("bytes")
		d.grant("tsk_a", gql.ArtifactKindBlob, blob)
		d.grant("tsk_b", gql.ArtifactKindBlob, blob)
		r.do(fetchTask("tsk_a", blob["digest"].(string), "/var/out/new"))
		require.NoFileExists(t, filepath.Join(outside, "new"))
		require.Equal(t, "SUCCEEDED", r.do(fetchTask("tsk_b", blob["digest"].(string), "/var/file")).State)
		require.Equal(t, "bytes regular file\n", r.text("tsk_m", "cat "+root+"/var/file; stat -c ' %F' "+
			root+"/var/file"))
		kept, err := os.ReadFile(filepath.Join(outside, "kept"))
		require.NoError(t, err)
		require.Equal(t, "kept\n", string(kept))
	})
}

// The member may do with its copy what it likes.
func TestCacheSharesNothingWritableWithTheMember(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		d := newDepot(r)
		blob := d.layer("the bytes as they are")
		d.grant("tsk_a", gql.ArtifactKindBlob, blob)
		d.grant("tsk_b", gql.ArtifactKindBlob, blob)
		digest := blob["digest"].(string)
		require.Equal(t, "SUCCEEDED", r.do(fetchTask("tsk_a", digest, "/var/blob")).State)
		r.text("tsk_l", "printf X | dd of="+root+"/var/blob conv=notrunc status=none")
		require.True(t, resultOf[fetchResult](t, r.do(fetchTask("tsk_b", digest, "/var/blob"))).Cached)
		require.Equal(t, "the bytes as they are", r.text("tsk_m", "cat "+root+"/var/blob"))
	})
}

// stream is bytes that need no memory: the same for the same seed.
type stream struct {
	size, at int64
	seed     uint64
}

func (s *stream) Read(into []byte) (int, error) {
	if s.at == s.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(into)), s.size-s.at))
	for i := range n {
		if place := s.at + int64(i); place%4096 < 8 {
			into[i] = byte((uint64(place/4096)*0x9E3779B97F4A7C15)>>(8*uint(place%8)) ^ s.seed)
		} else {
			into[i] = byte(place)
		}
	}
	s.at += int64(n)
	return n, nil
}

func (s *stream) Seek(to int64, _ int) (int64, error) { s.at = to; return to, nil }

// big keeps a part of some size that is in no memory.
func (d *depot) big(size int64) map[string]any {
	seed := rand.Uint64() // #nosec G404 -- bytes of a test
	sum := sha256.New()
	_, _ = io.Copy(sum, &stream{size: size, seed: seed})
	return d.addReader("application/octet-stream", fmt.Sprintf("sha256:%x", sum.Sum(nil)), size, func() io.ReadSeeker {
		return &stream{size: size, seed: seed}
	})
}

func TestKilledAgentGoesOnWhereItWasAndFetchesNothingTwice(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		d := newDepot(r)
		const size, early = 8 << 20, 3 << 20
		blob := d.big(size)
		digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
		d.before = func(w http.ResponseWriter, req *http.Request, _ string) bool {
			if req.Header.Get("Range") != "" {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.CopyN(&counting{w, d, digest}, d.parts[digest](), early)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			return true
		}
		r.give(fetchTask("tsk_a", digest, "/var/blob"))
		r.eventually(func() bool {
			info, err := os.Stat(filepath.Join(r.dir, "cache", "partial", strings.TrimPrefix(digest, "sha256:")))
			return err == nil && info.Size() == early
		}, "the agent has the first part")
		r.eventually(func() bool { return len(r.seen("tsk_a").reports) > 0 }, "the task runs")
		r.kill()
		r.run()
		done := r.ended("tsk_a")
		require.Equal(t, "SUCCEEDED", done.State, done.message)
		require.EqualValues(t, size, d.sent(digest), "every byte was sent once")
		require.EqualValues(t, size-early, resultOf[fetchResult](t, done).FetchedBytes)
		require.Contains(t, r.text("tsk_l", "sha256sum "+root+"/var/blob"), strings.TrimPrefix(digest, "sha256:"))
		require.Empty(t, leftovers(t, r, "/var"), "no draft is left")
	})
}

// leftovers lists drafts of files in a folder of the member.
func leftovers(t *testing.T, r *rig, dir string) string {
	t.Helper()
	return r.text("tsk_left", "ls -A "+root+dir+" | grep gpuaas || true")
}

func TestBytesThatAreNotTheArtifactAreRefusedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{"truncated": "the by", "swapped": "THE BYTES",
		"longer": "the bytes and more"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "process")
			d := newDepot(r)
			blob := d.layer("the bytes")
			digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
			d.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				_, _ = io.WriteString(w, wrong)
				return true
			}
			done := r.do(fetchTask("tsk_a", digest, "/var/blob"))
			require.Equal(t, "FAILED", done.State)
			require.Equal(t, "DIGEST_MISMATCH", resultOf[fetchResult](t, done).Code, done.message)
			require.Equal(t, 3, d.asked[digest])
			require.Empty(t, r.inCache())
			require.Equal(t, "lib\nlog\n", r.text("tsk_l", "ls -A "+root+"/var"))
		})
	}
}

func TestDamagedCacheIsNoticedAndFetchedAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"changed":   func(path string) error { return os.WriteFile(path, []byte("the bytez"), 0o600) },
		"truncated": func(path string) error { return os.Truncate(path, 3) },
		"removed":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "process")
			d := newDepot(r)
			blob := d.layer("the bytes")
			digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
			d.grant("tsk_b", gql.ArtifactKindBlob, blob)
			require.Equal(t, "SUCCEEDED", r.do(fetchTask("tsk_a", digest, "/var/blob")).State)
			require.NoError(t, damage(filepath.Join(r.dir, "cache", "sha256", strings.TrimPrefix(digest, "sha256:"))))
			done := r.do(fetchTask("tsk_b", digest, "/var/blob"))
			require.Equal(t, "SUCCEEDED", done.State, done.message)
			require.EqualValues(t, 9, resultOf[fetchResult](t, done).FetchedBytes)
			require.Equal(t, "the bytes", r.text("tsk_l", "cat "+root+"/var/blob"))
		})
	}
}
