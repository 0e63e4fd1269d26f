package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// CatalogApp is the app of the manifests that Catalog makes.
const CatalogApp = "bench-catalog"

// Catalog puts n manifests of one app into the catalog, and as many artifacts; it answers the artifacts' digests. The
// manifests are of a stage that every tenant sees and that any number of versions may have.
// Forget takes them away again.
func (s *Set) Catalog(ctx context.Context, n int) (digests []string, err error) {
	if err := s.ForgetCatalog(ctx); err != nil {
		return nil, err
	}
	whole := Manifest()
	whole["app"] = CatalogApp
	document, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	app, now := ids.New(ids.App), time.Now().UTC().Truncate(time.Microsecond)
	digests = make([]string, n)
	for i := range digests {
		digests[i] = fmt.Sprintf("sha256:%064x", 0xca7a_0000_0000+i)
	}
	tables := []table{
		{"app", []string{"id", "slug", "display_name", "permission_family", "created_at"}, 1, func(int) []any {
			return []any{app, CatalogApp, "Catalog", "apps", now}
		}},
		{"manifest", []string{"id", "app_id", "app_slug", "version", "display_name", "summary", "stage", "digest",
			"document", "adapter_name", "created_at"}, n,
			func(i int) []any {
				return []any{ids.New(ids.Manifest), app, CatalogApp, fmt.Sprintf("1.0.%d", i),
					fmt.Sprintf("Catalog %d", i), "An app for measuring.", "DEPRECATED",
					digests[i], document, AdapterName, now}
			}},
		{"artifact", []string{"id", "name", "media_type", "ref", "digest", "size_bytes", "stage", "created_at"}, n,
			func(i int) []any {
				return []any{ids.New(ids.Artifact), CatalogApp, mediaType, "registry.bench/catalog@" + digests[i],
					digests[i], 1_024 + i, "ACTIVE", now}
			}},
	}
	err = pgx.BeginFunc(ctx, s.Admin, func(t pgx.Tx) error {
		for _, one := range tables {
			source := pgx.CopyFromSlice(one.rows, func(n int) ([]any, error) { return one.row(n), nil })
			if _, err := t.CopyFrom(ctx, pgx.Identifier{one.name}, one.columns, source); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a catalog: %w", err)
	}
	if _, err := s.Admin.Exec(ctx, `ANALYZE manifest; ANALYZE artifact`); err != nil {
		return nil, fmt.Errorf("analyze the catalog: %w", err)
	}
	return digests, nil
}

// ForgetCatalog deletes what Catalog created.
func (s *Set) ForgetCatalog(ctx context.Context) error {
	for _, statement := range []string{`DELETE FROM manifest
		WHERE app_slug = $1`, `DELETE FROM artifact WHERE name = $1`,
		`DELETE FROM app WHERE slug = $1`} {
		if _, err := s.Admin.Exec(ctx, statement, CatalogApp); err != nil {
			return fmt.Errorf("delete the catalog: %w", err)
		}
	}
	return nil
}
