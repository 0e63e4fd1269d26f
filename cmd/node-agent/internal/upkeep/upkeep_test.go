package upkeep_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/upkeep"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

const patience = 60 * time.Second

// fake is a platform.
type fake struct {
	mu      sync.Mutex
	told    gql.NodeVolumes
	changed chan struct{} // closed with each change of what is told
	failing error         // of questions
	refuses error         // of reports
	reports map[string]gql.VolumeReportInput
	asked   int
}

func (f *fake) tell(version string, volumes ...gql.NodeVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = gql.NodeVolumes{Version: version, Volumes: volumes}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Volumes(ctx context.Context, known string, _ time.Duration) (gql.NodeVolumes, error) {
	for {
		f.mu.Lock()
		told, failing, changed := f.told, f.failing, f.changed
		f.asked++
		f.mu.Unlock()
		if failing != nil || told.Version != known {
			return told, failing
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return told, ctx.Err()
		}
	}
}

func (f *fake) ReportVolumes(_ context.Context, reports []gql.VolumeReportInput) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return f.refuses
	}
	for _, one := range reports {
		f.reports[one.Id] = one
	}
	return nil
}

func (f *fake) said(id string) gql.VolumeReportInput {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reports[id]
}

func (f *fake) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fake) set(failing, refuses error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing, f.refuses = failing, refuses
}

// ground is a keeper at work, on a real store.
type ground struct {
	*upkeep.Keeper
	fake  *fake
	store *volume.Store
	disk  string
	news  atomic.Int32
}

func newGround(t *testing.T, failing error) *ground {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("volumes need root")
	}
	g := &ground{disk: t.TempDir(), fake: &fake{changed: make(chan struct{}), failing: failing,
		reports: map[string]gql.VolumeReportInput{}, told: gql.NodeVolumes{Version: "0"}}}
	storages, err := volume.Parse([]string{"disk=local:" + g.disk})
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	g.store = volume.Open(t.Context(), storages, log)
	g.Keeper = upkeep.New(upkeep.Options{Platform: g.fake, Store: g.store, Users: func(string) []string { return nil },
		News: func() { g.news.Add(1) }, Renewed: make(chan struct{}), Log: log})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	return g
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, patience, 10*time.Millisecond, what)
}

// blocks reads from an image how many blocks its file system has. To mount it for that would keep it from growing where
// the kernel does not grow a mounted file system.
func blocks(t *testing.T, image string) uint32 {
	t.Helper()
	file, err := os.Open(image)
	require.NoError(t, err)
	defer file.Close()
	raw := make([]byte, 4)
	_, err = file.ReadAt(raw, 1028)
	require.NoError(t, err)
	return binary.LittleEndian.Uint32(raw)
}

func TestVolumesAreMeasuredGrownAndDeletedAsThePlatformWants(t *testing.T) {
	t.Parallel()
	g := newGround(t, nil)
	const mib = 1 << 20
	v := volume.Volume{ID: "vol_a", Storage: "disk", SizeBytes: 32 * mib}
	wanted := gql.NodeVolume{Id: "vol_a", Storage: "disk", SizeBytes: 32 * mib}
	other := gql.NodeVolume{Id: "vol_unborn", Storage: "disk", SizeBytes: 32 * mib}
	require.NoError(t, g.store.Make(t.Context(), []volume.Volume{v}))
	g.fake.tell("1", wanted, other)
	eventually(t, func() bool { return g.fake.said("vol_a").State == gql.VolumeFindingPresent }, "it is measured")
	require.Empty(t, g.fake.said("vol_unborn").State, "one that no member has used yet is not there")
	require.NoFileExists(t, filepath.Join(g.disk, "vol_unborn.img"))
	require.NoError(t, g.store.Make(t.Context(), []volume.Volume{{ID: other.Id, Storage: "disk", SizeBytes: 32 * mib}}))
	eventually(t, func() bool { return g.fake.said("vol_unborn").State == gql.VolumeFindingPresent },
		"it is measured with its first member")

	wanted.SizeBytes = 64 * mib
	g.fake.tell("2", wanted)
	eventually(t, func() bool { return blocks(t, filepath.Join(g.disk, "vol_a.img")) == 64*mib/4096 }, "it has grown")

	wanted.SizeBytes = 1 << 60
	g.fake.tell("3", wanted)
	eventually(t, func() bool { return g.fake.said("vol_a").State == gql.VolumeFindingBusy }, "it cannot grow")
	require.Contains(t, g.fake.said("vol_a").Message, "and the storage has")

	g.fake.set(nil, errors.New("away"))
	wanted.Gone = true
	other.Gone = true
	g.fake.tell("4", wanted, other)
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(g.disk, "vol_a.img")); return os.IsNotExist(err) },
		"it is deleted")
	require.Equal(t, gql.VolumeFindingBusy, g.fake.said("vol_a").State, "the platform does not know")
	g.fake.set(nil, nil)
	eventually(t, func() bool {
		return g.fake.said("vol_a").State == gql.VolumeFindingGone &&
			g.fake.said("vol_unborn").State == gql.VolumeFindingGone
	}, "it is told again")
	require.Equal(t, int32(1), g.news.Load(), "the storages are reported once")
}

func TestStoragesAreToldToAPlatformThatTakesThem(t *testing.T) {
	t.Parallel()
	g := newGround(t, &client.Error{Code: client.CodeUnavailable, Retryable: true})
	eventually(t, func() bool { return g.fake.times() > 1 }, "it is asked again")
	_, decided := g.Storages()
	require.False(t, decided, "nothing is known while it is away")
	g.fake.set(nil, nil)
	eventually(t, func() bool { _, decided := g.Storages(); return decided }, "it answers")
	states, _ := g.Storages()
	require.Len(t, states, 1)
	require.Equal(t, "disk", states[0].Name)
}

func TestAPlatformWithoutVolumesIsToldNoStorage(t *testing.T) {
	t.Parallel()
	g := newGround(t, &client.Error{Code: client.CodeDocumentInvalid})
	eventually(t, func() bool { _, decided := g.Storages(); return decided }, "it is known")
	states, _ := g.Storages()
	require.Empty(t, states)
	require.Equal(t, 1, g.fake.times(), "it is not asked again for a while")
}
