package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// standVolumes holds the volumes that a platform wants a node to look after, and the node's reports of them.
type standVolumes struct {
	wanted  gql.NodeVolumes
	reports []gql.VolumeReportInput
}

// stored keeps the storage of an inventory. With s.mu held.
func (s *standin) stored(heartbeat json.RawMessage) {
	var told struct {
		Inventory *struct{ Storage json.RawMessage }
	}
	if json.Unmarshal(heartbeat, &told) == nil && told.Inventory != nil {
		s.storage = told.Inventory.Storage
	}
}

// keeps answers the requests about volumes. The caller holds s.mu.
func (s *standin) keeps(operation string, input json.RawMessage) (any, *client.Error) {
	switch {
	case s.volumes == nil:
		return nil, &client.Error{Code: client.CodeDocumentInvalid, Message: `Cannot query field "nodeVolumes"`}
	case operation == "ReadNodeVolumes":
		return s.volumes.wanted, nil
	}
	var told struct{ Volumes []gql.VolumeReportInput }
	if err := json.Unmarshal(input, &told); err != nil {
		return nil, &client.Error{Code: "INVALID_ARGUMENT", Message: err.Error()}
	}
	s.volumes.reports = append(s.volumes.reports, told.Volumes...)
	return []string{}, nil
}

func (s *standin) want(version string, volumes ...gql.NodeVolume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes.wanted = gql.NodeVolumes{Version: version, Volumes: volumes}
}

// said reports whether the platform received a report of a volume in a state, with words in the message.
func (s *standin) said(id string, state gql.VolumeFinding, words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.volumes.reports {
		if one.Id == id && one.State == state && strings.Contains(one.Message, words) {
			return true
		}
	}
	return false
}

func (s *standin) storages() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.storage)
}

// served starts the agent again with a storage.
func (r *rig) served(dir string) {
	r.t.Helper()
	r.kill()
	opened := r.count(&r.opened)
	r.options.Storages = []string{"files=shared:" + dir}
	r.run()
	r.eventually(func() bool { return r.count(&r.opened) > opened }, "the agent subscribes again")
}

func newVolumeRig(t *testing.T) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("volumes need root")
	}
	return newRig(t, memberinit.ModeContainer)
}

func TestAVolumeIsDeletedWithProofWhenNoMemberHasIt(t *testing.T) {
	t.Parallel()
	r, dir := newVolumeRig(t), t.TempDir()
	r.volumes = &standVolumes{}
	r.served(dir)
	r.eventually(func() bool { return strings.Contains(r.storages(), `"name":"files"`) }, "the storage is reported")
	require.Contains(t, r.storages(), `"reason":""`)
	require.NotContains(t, r.storages(), dir, "the platform is told no path")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "vol_a", "inner"), 0o755))
	user := filepath.Join(r.dir, "members", "mem_user")
	require.NoError(t, os.MkdirAll(user, 0o700))
	require.NoError(t, roster.Store(user, roster.Record{MemberID: "mem_user", Volumes: []string{"vol_a"}}))

	r.want("1", gql.NodeVolume{Id: "vol_a", Storage: "files", SizeBytes: 1 << 30})
	r.eventually(func() bool { return r.said("vol_a", gql.VolumeFindingPresent, "") }, "it is measured")
	r.want("2", gql.NodeVolume{Id: "vol_a", Storage: "files", Gone: true},
		gql.NodeVolume{Id: "vol_../../etc", Storage: "files", Gone: true})
	r.eventually(func() bool {
		return r.said("vol_a", gql.VolumeFindingBusy, "member mem_user has it")
	}, "it is in use")
	r.eventually(func() bool {
		return r.said("vol_../../etc", gql.VolumeFindingBusy, "it is not an id")
	}, "it is refused")
	require.DirExists(t, filepath.Join(dir, "vol_a", "inner"))
	r.kill()
	r.run()
	require.False(t, r.said("vol_a", gql.VolumeFindingGone, ""), "the next agent knows it too")
	require.NoError(t, os.RemoveAll(user))
	r.eventually(func() bool { return r.said("vol_a", gql.VolumeFindingGone, "") }, "it is deleted")
	require.NoDirExists(t, filepath.Join(dir, "vol_a"))
}

// with gives a task's binding a volume.
func with(work gql.NodeWork, volume gql.MemberVolume) gql.NodeWork {
	work.Binding = &gql.MemberBinding{Profile: gql.MemberProfileService, Devices: []gql.Device{},
		Volumes: []gql.MemberVolume{volume}}
	return work
}

func TestATasksBindingMountsItsVolumes(t *testing.T) {
	t.Parallel()
	r, dir := newVolumeRig(t), t.TempDir()
	r.volumes = &standVolumes{}
	r.served(dir)
	v := gql.MemberVolume{Id: "vol_a", Storage: "files", Path: "/home/data", SizeBytes: 1 << 30}
	ended := r.do(with(shell("tsk_a", "echo hello > /home/data/f"), v))
	require.Equal(t, "SUCCEEDED", ended.State, ended.message)
	kept, err := os.ReadFile(filepath.Join(dir, "vol_a", "f"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(kept))
	require.Equal(t, []string{"vol_a"}, roster.Read(filepath.Join(r.dir, "members", member)).Volumes)

	v.Storage = "tape"
	other := shell("tsk_b", "true")
	other.MemberId = "mem_0000000000000000000agent1"
	ended = r.do(with(other, v))
	require.Equal(t, "FAILED", ended.State)
	require.Contains(t, string(ended.result), "VOLUME_UNAVAILABLE")
	require.NoDirExists(t, filepath.Join(r.dir, "members", other.MemberId))
}

func TestAPlatformWithoutVolumesIsServedAsBefore(t *testing.T) {
	t.Parallel()
	r := newVolumeRig(t)
	r.served(t.TempDir())
	r.eventually(func() bool { return strings.Contains(r.log.text(), "the platform does not support volumes") },
		"the agent says so")
	beats := r.count(&r.beats)
	r.eventually(func() bool { return r.count(&r.beats) > beats+1 }, "it beats")
	require.Empty(t, r.storages(), "a field that the platform has not would refuse the whole heartbeat")
	require.Equal(t, 1, strings.Count(r.log.text(), "the platform does not support volumes"), "once")
	require.Equal(t, "SUCCEEDED", r.do(shell("tsk_a", "true")).State)
}
