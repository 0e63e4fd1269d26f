package dataset

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/digest"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// table is one table's columns and its n-th row.
type table struct {
	name    string
	columns []string
	rows    int
	row     func(n int) []any
}

// Fill copies every table into the migrated database at dsn, an administrator's address. Foreign keys hold by
// construction, so their triggers are left out.
func Fill(ctx context.Context, dsn string, size Size) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to fill: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `SET session_replication_role = replica`); err != nil {
		return fmt.Errorf("prepare to fill: %w", err)
	}
	tables, err := size.catalogue()
	if err != nil {
		return err
	}
	for _, t := range append(append(tables, size.nodes()...), size.work()...) {
		source := pgx.CopyFromSlice(t.rows, func(n int) ([]any, error) { return t.row(n), nil })
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, source); err != nil {
			return fmt.Errorf("fill %s: %w", t.name, err)
		}
	}
	// FREEZE waits for the pages that a checkpoint is writing, which VACUUM would skip otherwise. How many pages are
	// visible to all is one of the things by which plans are chosen.
	if _, err := conn.Exec(ctx, `VACUUM (FREEZE, ANALYZE)`); err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

// catalogue are tenants, projects, two people a tenant who administer its projects, and the catalog. The second person
// of tenant n is that many tenants later.
func (s Size) catalogue() ([]table, error) {
	document, err := json.Marshal(Manifest())
	if err != nil {
		return nil, err
	}
	if _, err := manifest.Parse(document); err != nil {
		return nil, fmt.Errorf("the generated manifest: %w", err)
	}
	pinned := digest.Of(document)
	return []table{
		{"tenant", []string{"id", "slug", "display_name", "created_at"}, s.Tenants, func(n int) []any {
			return []any{ID(ids.Tenant, n), name("tenant", n), name("Tenant", n), at(0)}
		}},
		{"project", []string{"id", "tenant_id", "slug", "display_name", "created_at"}, s.projects(), func(n int) []any {
			return []any{Project(n), s.tenantOf(n), name("project", n), name("Project", n), at(0)}
		}},
		{"person", []string{"id", "tenant_id", "email", "display_name", "created_at"}, s.people(), func(n int) []any {
			return []any{ID(ids.User, n), ID(ids.Tenant, n%s.Tenants), name("person", n) + "@example.test",
				name("Person", n), at(0)}
		}},
		{"role_binding", []string{"id", "user_id", "role", "tenant_id", "project_id", "created_at"},
			2 * s.projects(), func(n int) []any {
				project := n % s.projects()
				return []any{ID(ids.RoleBinding, n), ID(ids.User, n/s.Projects), "project_admin", s.tenantOf(project),
					Project(project), at(0)}
			}},
		{"app", []string{"id", "slug", "display_name", "permission_family", "created_at"}, 1, func(int) []any {
			return []any{ID(ids.App, 0), App, "Bench", "apps", at(0)}
		}},
		{"adapter", []string{"id", "name", "url", "created_at"}, 1, func(int) []any {
			return []any{ID(ids.Adapter, 0), AdapterName, "http://127.0.0.1:1", at(0)}
		}},
		{"manifest", []string{"id", "app_id", "app_slug", "version", "display_name", "stage", "digest", "document",
			"adapter_name", "created_at"}, 1,
			func(int) []any {
				return []any{ID(ids.Manifest, 0), ID(ids.App, 0), App, Version, "Bench", "ACTIVE", pinned, document,
					AdapterName, at(0)}
			}},
		{"artifact", []string{"id", "name", "media_type", "ref", "digest", "size_bytes", "stage", "created_at"}, 1,
			func(int) []any {
				return []any{ID(ids.Artifact, 0), "bench", mediaType, artifactRef, artifactDigest, 1_024,
					"ACTIVE", at(0)}
			}},
		{"manifest_artifact", []string{"id", "manifest_id", "artifact_id"}, 1, func(int) []any {
			return []any{ID(ids.Manifest, 0), ID(ids.Manifest, 0), ID(ids.Artifact, 0)}
		}},
		{"entitlement", []string{"id", "tenant_id", "project_id", "app_slug", "created_at"}, s.projects(),
			func(n int) []any {
				return []any{ID(ids.Entitlement, n), s.tenantOf(n), Project(n), App, at(0)}
			}},
	}, nil
}

// The manifest's one artifact, which lies in no registry.
const (
	mediaType      = "application/vnd.oci.image.manifest.v1+json"
	artifactDigest = "sha256:0f0e0d0c0b0a09080706050403020100ffeeddccbbaa99887766554433221100"
	artifactRef    = "registry.bench/controller@" + artifactDigest
)

// Manifest is the catalog's one manifest: a component of 1 to 8 members, and no readiness probes,
// so that the adapter's word and nothing else takes time.
func Manifest() map[string]any {
	artifact := map[string]any{"name": "bench", "mediaType": mediaType, "ref": artifactRef, "digest": artifactDigest}
	return map[string]any{
		"schema": manifest.SchemaV1, "app": App, "version": Version, "displayName": "Bench",
		"summary":      "An app for measuring.",
		"artifactKind": "controller", "artifacts": []map[string]any{artifact}, "adapter": AdapterName,
		"permissionFamily": "apps",
		"compatibility": map[string]any{"requires_capacity_shape": []string{"baremetal", "gpu_slice"},
			"min_gpu_count": 0, "requires_exclusive_node": false, "network_span": "multi_allocation"},
		"components": []map[string]any{{"key": "worker", "displayName": "Workers", "min": 1, "max": 8, "default": 1}},
		"configSchema": map[string]any{"type": "object",
			"properties": map[string]any{"size": map[string]any{"type": "integer", "default": 2}}},
		"actions": []any{}, "readiness": []any{}, "secretPurposes": []any{}, "usageDimensions": []any{},
		"endpoints": []map[string]any{{"name": Endpoint, "title": "Bytes", "componentKey": "worker", "port": 7000,
			"protocol": manifest.ProtocolTCP, "permissionKey": "apps.instance.read"}},
		"docs": "# Bench",
	}
}

// nodes are one node and one allocation an instance.
func (s Size) nodes() []table {
	return []table{
		{"compute_node", []string{"id", "name", "address", "status", "cpus", "memory_mib", "gpus", "gpus_simulated",
			"isolation",
			"sealing_key", "created_at"}, s.Instances, func(n int) []any {
			return []any{ID(ids.Node, n), name("node", n), "192.0.2.1", "ONLINE", 8, 16_384, 8, true, "NAMESPACE",
				"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", at(0)}
		}},
		{"allocation", []string{"id", "tenant_id", "project_id", "name", "shape", "gpu_count", "status", "node_id",
			"instance_id",
			"created_at"}, s.Instances, func(n int) []any {
			project := n % s.projects()
			return []any{ID(ids.Allocation, n), s.tenantOf(project), Project(project), name("alloc", n), "BAREMETAL",
				8, "READY", ID(ids.Node, n), Instance(n), at(n)}
		}},
	}
}
