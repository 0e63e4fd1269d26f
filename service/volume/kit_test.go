package volume_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	domain "github.com/gpuaas/app-platform/domain/volume"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/volume"
)

// verbs keeps the service's fields below those of the kit, which have the same names.
type verbs struct{ *volume.Service }

// bench is a project with an admin, on a platform with an operator, a shared and a local class, and no node.
type bench struct {
	*platformtest.Kit
	verbs
	t               *testing.T
	tenant          *db.Tenant
	project         *db.Project
	admin, operator context.Context
	shared, local   *volume.Class
	manifest        *db.Manifest
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kit := platformtest.New(t)
	b := &bench{Kit: kit, verbs: verbs{&volume.Service{DB: kit.DB}}, t: t}
	b.tenant = kit.Tenant()
	b.project = kit.Project(b.tenant)
	b.admin = kit.As(kit.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	b.operator = kit.As(kit.Operator())
	b.shared = b.class("parallel", domain.Shared)
	b.local = b.class("disk", domain.Local)
	return b
}

func (b *bench) class(name string, kind domain.Kind) *volume.Class {
	b.t.Helper()
	made, err := b.CreateClass(b.operator, volume.CreateClassInput{Name: name, Kind: kind, Title: "Files of " + name})
	require.NoError(b.t, err)
	return made
}

// wanted is a volume of a class.
func (b *bench) wanted(name string, class *volume.Class, gib int) volume.CreateInput {
	return volume.CreateInput{ProjectID: b.project.ID, Name: name, StorageClass: class.Name, SizeGiB: gib,
		IdempotencyKey: "make-" + name}
}

func (b *bench) made(name string, class *volume.Class, gib int) *volume.Volume {
	b.t.Helper()
	made, err := b.Create(b.admin, b.wanted(name, class, gib))
	require.NoError(b.t, err)
	return made
}

// serve makes an online node that reports storages.
func (b *bench) serve(storages ...domain.Storage) ids.ID {
	b.t.Helper()
	node, _ := b.Node(1)
	encoded, err := json.Marshal(storages)
	require.NoError(b.t, err)
	b.SQL(`UPDATE compute_node SET storage = $2 WHERE id = $1`, node.ID, encoded)
	return node.ID
}

// seated notes that members on a node have had the volume.
func (b *bench) seated(v *volume.Volume, node ids.ID) {
	b.SQL(`INSERT INTO volume_node (volume_id, node_id) VALUES ($1, $2)`, v.ID, node)
}

// insertUser launches an instance that has a volume, as the launch's own statement does.
const insertUser = `INSERT INTO instance SELECT (jsonb_populate_record(i,
	jsonb_build_object('id', $2::text, 'name', $3::text,
	'correlation_id', $3::text, 'volumes', jsonb_build_array(jsonb_build_object('slot', 'home', 'volumeId', $4::text, 'path', '/home',
	'readOnly', false, 'components', '[]'::jsonb))))).* FROM instance i WHERE i.id = $1`

// user makes a running instance that has the volume at /home.
func (b *bench) user(name string, v *volume.Volume) ids.ID {
	b.t.Helper()
	id := ids.New(ids.Instance)
	b.SQL(insertUser, b.pattern(), id, name, v.ID)
	return id
}

// pattern is an instance without volumes.
func (b *bench) pattern() ids.ID {
	b.t.Helper()
	if b.manifest == nil {
		_, b.manifest = b.Launchable(b.project, "apps")
	}
	return b.Instance(b.project, b.manifest, lifecycle.InstanceRunning).ID
}

// trail is the audit without the entries that created the bench's classes.
func (b *bench) trail() (entries []*db.AuditEntry) {
	for _, entry := range b.Audit() {
		if entry.Action != "createStorageClass" || !entry.Allowed {
			entries = append(entries, entry)
		}
	}
	return entries
}

// done counts the allowed calls, without those that create a class.
func (b *bench) done() int {
	return b.Count("audit_entry", "allowed AND action <> 'createStorageClass'")
}
