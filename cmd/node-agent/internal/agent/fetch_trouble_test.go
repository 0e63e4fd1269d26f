package agent_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func TestSourceThatIsAwayIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.layer("the bytes")
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	var asked atomic.Int32
	d.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			panic(http.ErrAbortHandler)
		case 3: // a part of it, and then the connection breaks
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("the"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	}
	done := r.do(fetchTask("tsk_a", digest, "/var/blob"))
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	require.Equal(t, "the bytes", r.text("tsk_l", "cat "+root+"/var/blob"))
	require.EqualValues(t, 6, d.sent(digest), "the last answer begins where the third broke")
}

func TestTokenThatEndsIsRenewed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.layer("the bytes")
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	var once atomic.Bool
	d.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		if once.Swap(true) {
			return false
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.token = "tok-1"
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	done := r.do(fetchTask("tsk_a", digest, "/var/blob"))
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	require.Equal(t, 2, d.opened)
	require.NotContains(t, r.log.text(), "tok-")
}

func TestRefusalsOfThePlatformAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	digest := digestOf([]byte("x"))
	done := r.do(fetchTask("tsk_unknown", digest, "/var/blob"))
	require.Equal(t, "ARTIFACT_UNAVAILABLE", resultOf[fetchResult](t, done).Code)
	d.artifacts["tsk_quarantined"] = gql.ArtifactDelivery{}
	done = r.do(fetchTask("tsk_quarantined", digest, "/var/blob"))
	require.Equal(t, "ARTIFACT_QUARANTINED", resultOf[fetchResult](t, done).Code)
	require.Contains(t, done.message, "found bad")
	lost := d.layer("lost by its source")
	d.grant("tsk_lost", gql.ArtifactKindBlob, lost)
	delete(d.parts, lost["digest"].(string))
	done = r.do(fetchTask("tsk_lost", lost["digest"].(string), "/var/blob"))
	require.Equal(t, "ARTIFACT_UNAVAILABLE", resultOf[fetchResult](t, done).Code)
	require.Contains(t, done.message, "404")
}

// Quarantined in the middle: the delivery opens no more.
func TestQuarantineStopsAFetchThatGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.layer("the bytes")
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	d.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.artifacts["tsk_a"] = gql.ArtifactDelivery{}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	done := r.do(fetchTask("tsk_a", digest, "/var/blob"))
	require.Equal(t, "ARTIFACT_QUARANTINED", resultOf[fetchResult](t, done).Code)
}

// hanging serves some bytes and then nothing until the request ends.
func (d *depot) hanging(size int, digest string) {
	d.before = func(w http.ResponseWriter, req *http.Request, _ string) bool {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = (&counting{w, d, digest}).Write([]byte("the"))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return true
	}
}

func TestFetchStopsWhenItIsCanceledOrItsTimeIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.layer("the bytes")
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	d.grant("tsk_b", gql.ArtifactKindBlob, blob)
	d.grant("tsk_c", gql.ArtifactKindBlob, blob)
	d.hanging(9, digest)
	canceled := fetchTask("tsk_a", digest, "/var/blob")
	r.give(canceled)
	r.eventually(func() bool { return d.sent(digest) > 0 }, "it goes on")
	canceled.CancelRequested = true
	r.push(canceled)
	require.Equal(t, "CANCELED", r.ended("tsk_a").State)
	late := fetchTask("tsk_b", digest, "/var/blob")
	late.TimeoutSeconds = 1
	require.Equal(t, "TIMED_OUT", r.do(late).State)
	d.mu.Lock()
	d.before = nil
	d.mu.Unlock()
	require.Equal(t, "SUCCEEDED", r.do(fetchTask("tsk_c", digest, "/var/blob")).State, "what they hold is let go")
}

func TestTearingDownDoesNotWaitForAFetchAndIsNotUndoneByIt(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		d := newDepot(r)
		blob := d.layer("the bytes")
		digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
		going := make(chan struct{})
		var once atomic.Bool
		d.before = func(http.ResponseWriter, *http.Request, string) bool {
			if !once.Swap(true) {
				<-going
			}
			return false
		}
		r.give(fetchTask("tsk_a", digest, "/var/blob"))
		r.eventually(func() bool { return once.Load() }, "it goes on")
		require.Equal(t, "SUCCEEDED", r.do(newTask("tsk_down", "TEARDOWN", map[string]any{})).State)
		close(going)
		require.Equal(t, "SANDBOX_LOST", resultOf[fetchResult](t, r.ended("tsk_a")).Code)
		left, err := r.manager().Residue(member)
		require.NoError(t, err)
		require.True(t, left.Empty(), "%+v", left)
	})
}

func TestTasksForOneArtifactFetchItOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.big(1 << 20)
	digest := blob["digest"].(string)
	for i := range 5 {
		d.grant(fmt.Sprintf("tsk_%d", i), gql.ArtifactKindBlob, blob)
		r.give(fetchTask(fmt.Sprintf("tsk_%d", i), digest, fmt.Sprintf("/var/blob%d", i)))
	}
	for i := range 5 {
		require.Equal(t, "SUCCEEDED", r.ended(fmt.Sprintf("tsk_%d", i)).State)
	}
	require.EqualValues(t, 1<<20, d.sent(digest))
	require.Equal(t, 1, d.asked[digest])
}

func TestCacheKeepsToItsBoundAndSaysWhatCannotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	r.kill()
	r.options.CacheBytes = 100
	r.run()
	d := newDepot(r)
	var digests []string
	for i := range 3 {
		id, blob := fmt.Sprintf("tsk_%d", i), d.layer(strings.Repeat(strconv.Itoa(i), 40))
		digests = append(digests, d.grant(id, gql.ArtifactKindBlob, blob))
		require.Equal(t, "SUCCEEDED", r.do(fetchTask(id, digests[i], "/var/blob")).State)
	}
	require.Len(t, r.inCache(), 2)
	require.NoFileExists(t, filepath.Join(r.dir, "cache", "sha256", strings.TrimPrefix(digests[0], "sha256:")),
		"the oldest went")
	large := d.layer(strings.Repeat("x", 101))
	d.grant("tsk_large", gql.ArtifactKindBlob, large)
	done := r.do(fetchTask("tsk_large", large["digest"].(string), "/var/large"))
	require.Equal(t, "DISK_FULL", resultOf[fetchResult](t, done).Code)
	require.Zero(t, d.sent(large["digest"].(string)))
	require.Len(t, r.inCache(), 2, "nothing had to go for what cannot fit")
}

func TestProgressIsToldAndEndsBeforeTheOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.layer("the bytes")
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	hold := make(chan struct{})
	d.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("Content-Length", "9")
		_, _ = w.Write([]byte("the"))
		_ = http.NewResponseController(w).Flush()
		<-hold
		_, _ = w.Write([]byte(" bytes"))
		return true
	}
	r.give(fetchTask("tsk_a", digest, "/var/blob"))
	r.eventually(func() bool {
		reports := r.seen("tsk_a").reports
		last := reports[max(len(reports)-1, 0):]
		return len(last) == 1 && last[0].ProgressDone != nil && *last[0].ProgressDone == 3 &&
			*last[0].ProgressTotal == 9
	}, "the platform hears of three bytes of nine")
	close(hold)
	require.Equal(t, "SUCCEEDED", r.ended("tsk_a").State)
	reports := r.seen("tsk_a").reports
	require.Equal(t, gql.NodeTaskStateSucceeded, reports[len(reports)-1].State)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// The part is four times what either process may ever have had in memory.
func TestMemoryIsFlatWhateverThePartsSize(t *testing.T) {
	t.Parallel()
	r := newRig(t, "process")
	d := newDepot(r)
	blob := d.big(256 << 20)
	digest := d.grant("tsk_a", gql.ArtifactKindBlob, blob)
	task := fetchTask("tsk_a", digest, "/var/blob")
	task.TimeoutSeconds = 300
	r.give(task)
	require.Eventually(t, func() bool { ended := r.seen("tsk_a"); return ended.ended() }, 4*time.Minute,
		20*time.Millisecond)
	done := r.seen("tsk_a")
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	init := strings.TrimSpace(r.text("tsk_l", "ps -o ppid= -p $PPID"))
	for _, pid := range []string{strconv.Itoa(r.process.Process.Pid), init} {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		require.NoError(t, err)
		match := highWater.FindSubmatch(status)
		require.NotNil(t, match)
		kib, err := strconv.Atoi(string(match[1]))
		require.NoError(t, err)
		require.Less(t, kib, 64<<10, "KiB of process %s", pid)
	}
}
