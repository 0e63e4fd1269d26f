package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
)

// filed is a bundle whose app has the slots home, of all members, and data, of the head alone, which is required.
func filed(t *testing.T) *bundle {
	b := setup(t)
	document := b.document("2.0.0")
	document["volumes"] = []map[string]any{
		{"name": "home", "title": "Homes", "path": "/home"},
		{"name": "data", "title": "Data", "path": "/srv/data", "components": []string{"head"}, "access": "READ_ONLY",
			"required": true},
	}
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.stored.ID)
	b.stored = b.Manifest(lifecycle.StageActive, document)
	return b
}

// serve has the node of an allocation report a storage.
func (b *bundle) serve(of *db.Allocation, storages ...volume.Storage) {
	b.t.Helper()
	text, err := json.Marshal(storages)
	require.NoError(b.t, err)
	b.SQL(`UPDATE compute_node SET storage = $2 WHERE id = $1`, *of.NodeID, text)
}

// class makes a storage class of a name.
func (b *bundle) class(name string, kind volume.Kind) ids.ID {
	b.t.Helper()
	id := ids.New(ids.StorageClass)
	b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, $2, $3, $2, now(), now())`, id, name, string(kind))
	return id
}

// volume makes a volume of a class in the bundle's project.
func (b *bundle) volume(class ids.ID, name string) ids.ID {
	b.t.Helper()
	id := ids.New(ids.Volume)
	b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
		created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 2, 'READY', $6, now(),
		now())`, id, b.tenant.ID, b.project.ID, class, name, b.admin.ID)
	return id
}

func using(choices ...change.VolumeChoice) func(*instance.LaunchInput) {
	return func(in *instance.LaunchInput) { in.Volumes = choices }
}

func TestALaunchedInstanceHasItsVolumesWhereItsManifestSays(t *testing.T) {
	t.Parallel()
	b := filed(t)
	shared := b.class("shared", volume.Shared)
	home, data := b.volume(shared, "home"), b.volume(shared, "data")
	b.serve(b.one, volume.Storage{Name: "shared", Kind: volume.Shared})
	b.serve(b.two, volume.Storage{Name: "shared", Kind: volume.Shared})
	in := b.launch(using(change.VolumeChoice{Slot: "home", VolumeID: home},
		change.VolumeChoice{Slot: "data", VolumeID: data}))

	plan, err := b.service.PlanLaunch(b.ctx, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed, "%+v", plan.Verdicts)
	of := func(component string) (slots []string) {
		for _, member := range plan.Members {
			if member.ComponentKey == component {
				for _, one := range member.Volumes {
					slots = append(slots, one.Slot)
				}
				break
			}
		}
		return slots
	}
	require.Equal(t, []string{"home", "data"}, of("head"))
	require.Equal(t, []string{"home"}, of("worker"))

	in.PlanHash = plan.Hash
	started, err := b.service.Launch(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, []volume.Binding{
		{Slot: "home", VolumeID: home, Path: "/home", Components: []string{}},
		{Slot: "data", VolumeID: data, Path: "/srv/data", ReadOnly: true, Components: []string{"head"}},
	}, started.Instance.Volumes)

	var head, worker isolation.Binding
	read := func(component string, into *isolation.Binding) {
		require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT platform.member_binding(id) FROM member
			WHERE instance_id = $1
			AND component_key = $2 LIMIT 1`, started.Instance.ID, component).Scan(into))
	}
	read("head", &head)
	read("worker", &worker)
	require.Equal(t, []volume.Mount{
		{ID: home, Storage: "shared", Path: "/home", SizeBytes: 2 << 30},
		{ID: data, Storage: "shared", Path: "/srv/data", ReadOnly: true, SizeBytes: 2 << 30},
	}, head.Volumes)
	require.Equal(t, head.Volumes[:1], worker.Volumes)
	require.Equal(t, 3, b.Count("volume_node", ""), "home on both nodes, data where the head is")

	in.Volumes, in.Name, in.IdempotencyKey = in.Volumes[:1], "other", "k2"
	_, err = b.service.Launch(b.ctx, in)
	require.Equal(t, fault.PlanStale, fault.From(err).Code, "another volume is another plan")
}

func TestALaunchIsRefusedWithVolumesThatItCannotHave(t *testing.T) {
	t.Parallel()
	b := filed(t)
	shared := b.class("shared", volume.Shared)
	data, dying := b.volume(shared, "data"), b.volume(shared, "dying")
	b.SQL(`UPDATE volume SET status = 'DELETING' WHERE id = $1`, dying)
	foreign := b.volume(shared, "foreign")
	b.SQL(`UPDATE volume SET project_id = $2 WHERE id = $1`, foreign, b.Project(b.tenant).ID)
	serve := func(one, two volume.Storage) { b.serve(b.one, one); b.serve(b.two, two) }
	offered := volume.Storage{Name: "shared", Kind: volume.Shared}
	broken := volume.Storage{Name: "shared", Kind: volume.Shared, Reason: "it takes no id-mapped mounts"}
	choose := func(slot string, id ids.ID) change.VolumeChoice { return change.VolumeChoice{Slot: slot, VolumeID: id} }
	for name, test := range map[string]struct {
		choices  []change.VolumeChoice
		one, two volume.Storage
		code     fault.Code
		path     string
		says     string
	}{
		"a required slot without a volume": {nil, offered, offered, fault.InvalidArgument, "input.volumes",
			`slot "data"`},
		"a slot that is not there": {[]change.VolumeChoice{choose("data", data), choose("hme", data)}, offered, offered,
			fault.InvalidArgument, "input.volumes.1.slot", "it has the slots home, data"},
		"a slot twice": {[]change.VolumeChoice{choose("data", data), choose("data", data)}, offered, offered,
			fault.InvalidArgument, "input.volumes.1.slot", "named twice"},
		"another project's volume": {[]change.VolumeChoice{choose("data", foreign)}, offered, offered, fault.NotFound,
			"input.volumes.0.volumeId", "no volume"},
		"a volume that is being deleted": {[]change.VolumeChoice{choose("data", dying)}, offered, offered,
			fault.FailedPrecondition, "input.volumes.0.volumeId", "being deleted"},
		"a node that does not serve it": {[]change.VolumeChoice{choose("data", data), choose("home", data)}, offered,
			volume.Storage{Name: "other", Kind: volume.Shared}, fault.Incompatible, "input.allocationIds",
			`no storage "shared"`},
		"a node whose storage is broken": {[]change.VolumeChoice{choose("data", data)}, broken, broken,
			fault.Incompatible, "input.allocationIds", "takes no id-mapped mounts"},
	} {
		t.Run(name, func(t *testing.T) {
			serve(test.one, test.two)
			before := b.written()
			_, err := b.service.Launch(b.ctx, b.launch(using(test.choices...)))
			refused := fault.From(err)
			require.Equal(t, test.code, refused.Code, refused)
			require.Equal(t, test.path, refused.Reasons[0].Path)
			require.Contains(t, refused.Reasons[0].Message, test.says)
			require.Equal(t, before, b.written())
		})
	}
}

func TestALocalVolumeKeepsItsMembersOnOneNode(t *testing.T) {
	t.Parallel()
	b := filed(t)
	local := b.class("fast", volume.Local)
	data, home := b.volume(local, "data"), b.volume(local, "home")
	b.serve(b.one, volume.Storage{Name: "fast", Kind: volume.Local})
	b.serve(b.two, volume.Storage{Name: "fast", Kind: volume.Local})
	both := using(change.VolumeChoice{Slot: "data", VolumeID: data}, change.VolumeChoice{Slot: "home", VolumeID: home})

	_, err := b.service.Launch(b.ctx, b.launch(both))
	require.Contains(t, fault.From(err).Reasons[0].Message, "the disk of one node")

	onOne := func(in *instance.LaunchInput) { in.AllocationIDs = []ids.ID{b.one.ID} }
	_, err = b.service.Launch(b.ctx, b.launch(both, onOne))
	require.NoError(t, err)
	require.Equal(t, 2, b.Count("volume", "node_id = '"+string(*b.one.NodeID)+"'"), "it is where it is used first")

	onTwo := func(in *instance.LaunchInput) {
		in.AllocationIDs, in.Name, in.IdempotencyKey = []ids.ID{b.two.ID}, "two", "k2"
	}
	_, err = b.service.Launch(b.ctx, b.launch(both, onTwo))
	require.Equal(t, fault.Incompatible, fault.From(err).Code)
	require.Contains(t, fault.From(err).Reasons[0].Message, "the disk of one node")
}

func TestAVersionThatMovesAVolumeIsRefused(t *testing.T) {
	t.Parallel()
	b := filed(t)
	shared := b.class("shared", volume.Shared)
	data := b.volume(shared, "data")
	b.serve(b.one, volume.Storage{Name: "shared", Kind: volume.Shared})
	b.serve(b.two, volume.Storage{Name: "shared", Kind: volume.Shared})
	started, err := b.service.Launch(b.ctx, b.launch(using(change.VolumeChoice{Slot: "data", VolumeID: data})))
	require.NoError(t, err)
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	document := b.document("3.0.0")
	document["volumes"] = []map[string]any{
		{"name": "data", "title": "Data", "path": "/data", "components": []string{"head"}, "access": "READ_ONLY",
			"required": true},
		{"name": "home", "title": "Homes", "path": "/home", "required": true},
	}
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.stored.ID)
	b.Manifest(lifecycle.StageActive, document)
	plan, err := b.service.PlanUpgrade(b.ctx, instance.UpgradeInput{InstanceID: started.Instance.ID, Version: "3.0.0",
		DeadlineSeconds: 600})
	require.NoError(t, err)
	require.False(t, plan.Allowed)
	said := ""
	for _, one := range plan.Verdicts {
		for _, reason := range one.Reasons {
			said += reason.Message + "\n"
		}
	}
	require.Contains(t, said, `the version has slot "data" at another path`)
	require.Contains(t, said, `needs a volume in its slot "home"`)
}
