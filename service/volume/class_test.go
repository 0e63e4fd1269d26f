package volume_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/volume"
)

func TestOperatorsOfferStorageToEverybody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	title, disabled := "Scratch", true
	changed, err := b.UpdateClass(b.operator, volume.UpdateClassInput{StorageClassID: b.local.ID, Title: &title,
		Disabled: &disabled, Reason: "it is full"})
	require.NoError(t, err)
	require.Equal(t, []any{"disk", domain.Local, "Scratch", true},
		[]any{changed.Name, changed.Kind, changed.Title, changed.Disabled})
	stranger := b.As(b.User(b.Tenant()))
	listed, err := b.Classes(stranger)
	require.NoError(t, err)
	require.Len(t, listed, 2)
	require.Equal(t, []string{"disk", "Scratch", "parallel"}, []string{listed[0].Name, listed[0].Title, listed[1].Name},
		"by name")
	entries := b.trail()
	require.Len(t, entries, 1)
	require.Equal(t, []string{"updateStorageClass", "storage.class.manage", "it is full"},
		[]string{entries[0].Action, entries[0].PermissionKey, entries[0].Reason})
	_, err = b.Create(b.admin, b.wanted("files", b.local, 1))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.storageClass")
	require.Zero(t, b.Count("volume", "")+b.Count("idempotency", ""))
}

func TestBadClassesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, in := range map[string]volume.CreateClassInput{
		"input.name":        {Name: "Fast", Kind: domain.Shared, Title: "x"},
		"input.title":       {Name: "fast", Kind: domain.Shared},
		"input.description": {Name: "fast", Kind: domain.Shared, Title: "x", Description: "a\x00"},
	} {
		_, err := b.CreateClass(b.operator, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	good := volume.CreateClassInput{Name: "fast", Kind: domain.Shared, Title: "x"}
	_, err := b.CreateClass(b.admin, good)
	platformtest.Refused(t, err, fault.Forbidden)
	good.Name = b.shared.Name
	_, err = b.CreateClass(b.operator, good)
	platformtest.Refused(t, err, fault.Conflict, "input.name")
	require.Equal(t, 2, b.Count("storage_class", ""))

	disabled := true
	_, err = b.UpdateClass(b.operator, volume.UpdateClassInput{StorageClassID: b.shared.ID})
	platformtest.Refused(t, err, fault.InvalidArgument, "input")
	_, err = b.UpdateClass(b.admin, volume.UpdateClassInput{StorageClassID: b.shared.ID, Disabled: &disabled})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.UpdateClass(b.operator, volume.UpdateClassInput{StorageClassID: ids.New(ids.StorageClass),
		Disabled: &disabled})
	platformtest.Refused(t, err, fault.NotFound)
	require.Zero(t, b.Count("storage_class", "disabled")+b.done())
}

func TestAnOfferIsTheSumOfTheNodesThatAreThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	found, err := b.Offers(b.admin, []ids.ID{b.shared.ID, b.local.ID})
	require.NoError(t, err)
	require.Empty(t, found, "no node offers anything")
	parallel := domain.Storage{Name: "parallel", Kind: domain.Shared, TotalBytes: 1000, FreeBytes: 600}
	disk := domain.Storage{Name: "disk", Kind: domain.Local, TotalBytes: 100, FreeBytes: 70, SizeEnforced: true}
	b.serve(parallel, disk)
	parallel.FreeBytes = 599
	b.serve(parallel, disk)
	away := b.serve(parallel, disk)
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, away)
	disk.Kind, parallel.Reason = domain.Shared, "it is not writable"
	b.serve(parallel, disk)
	found, err = b.Offers(b.admin, []ids.ID{b.shared.ID, b.local.ID})
	require.NoError(t, err)
	require.Equal(t, map[ids.ID]*volume.Offer{
		b.shared.ID: {Nodes: 2, TotalBytes: 1000, FreeBytes: 599},
		b.local.ID:  {Nodes: 2, TotalBytes: 200, FreeBytes: 140, SizeEnforced: true},
	}, found)
}
