package server

import "github.com/gpuaas/app-platform/domain/ids"

// recipesOfVolumes are the recipes of volumes and storage classes.
var recipesOfVolumes = map[string]func(v, a *house) []arguments{
	"query storageClasses": none,
	"query volume":         func(v, _ *house) []arguments { return one("id", v.Volume) },
	"query volumes": func(v, _ *house) []arguments {
		return []arguments{{"projectId": v.Project}, {"projectId": v.Project, "deleted": true}}
	},
	"mutation createStorageClass": plain(func(_, _ *house) []object {
		return []object{{"name": "mine", "kind": "SHARED", "title": "mine"}}
	}),
	"mutation updateStorageClass": plain(func(v, _ *house) []object {
		return []object{{"storageClassId": v.class, "disabled": true, "reason": "mine"}}
	}),
	"query planCreateVolume": input(newVolume),
	"query planResizeVolume": plain(newSize),
	"mutation createVolume":  input(newVolume),
	"mutation resizeVolume":  plain(newSize),
	"mutation deleteVolume": func(v, _ *house) []arguments {
		return []arguments{{"volumeId": v.Volume, "reason": "mine"}}
	},
}

func newVolume(v, _ *house) []object {
	return []object{{"projectId": v.Project, "name": "mine", "storageClass": v.class, "sizeGiB": 1}}
}

func newSize(v, _ *house) []object {
	return []object{{"volumeId": v.Volume, "sizeGiB": 9, "reason": "mine"}}
}

// addVolume makes a storage class, and a volume of the house in it.
func (b *bench) addVolume(h *house) {
	h.class, h.Volume = ids.New(ids.StorageClass), ids.New(ids.Volume)
	b.SQL(`INSERT INTO storage_class (id, name, kind, title, created_at, updated_at)
		VALUES ($1, replace($1, '_', '-'), 'SHARED', 'a test', now(), now())`, h.class)
	b.SQL(`INSERT INTO volume (id, tenant_id, project_id, storage_class_id, name, size_gib, status, created_by,
		created_at,
		updated_at) VALUES ($1, $2, $3, $4, 'home', 1, 'READY', $5, now(),
		now())`, h.Volume, h.Tenant, h.Project, h.class,
		h.User)
}
