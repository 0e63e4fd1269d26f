package dataset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
)

// Blob is a file that a source has.
type Blob struct {
	Digest, Ref string
	Size        int64
}

// Fetch is a running task that fetches a blob, with what it is for and the credential that its node shows.
type Fetch struct{ Task, Node, Artifact, Credential, source ids.ID }

// Fetch makes a blob an artifact with a source of its own, and a task of some member that fetches it.
func (s *Set) Fetch(ctx context.Context, of Blob) (made Fetch, err error) {
	made = Fetch{Task: ids.New(ids.NodeTask), Artifact: ids.New(ids.Artifact), Credential: ids.New(ids.NodeCredential),
		source: ids.New(ids.ArtifactSource)}
	err = pgx.BeginFunc(ctx, s.Admin, func(t pgx.Tx) error {
		for _, one := range []struct {
			sql  string
			args []any
		}{
			{`INSERT INTO artifact_source (id, name, kind, location, signature_policy, created_at)
				VALUES ($1, $1, 'HTTPS', $2, 'OPTIONAL', $3)`,
				[]any{made.source, of.Ref, time.Now()}},
			{`INSERT INTO artifact (id, name, kind, media_type, ref, digest, size_bytes, stage, source_id, created_at)
				VALUES ($1, 'bench-blob', 'BLOB', 'application/octet-stream', $2, $3, $4, 'ACTIVE', $5, $6)`,
				[]any{made.Artifact, of.Ref, of.Digest, of.Size, made.source, time.Now()}},
			{`INSERT INTO artifact_part (id, artifact_id, position, role, digest, size_bytes)
				VALUES ($1, $1, 0, 'BLOB', $2, $3)`,
				[]any{made.Artifact, of.Digest, of.Size}},
			{`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec,
				spec_digest, fence,
				state, timeout_seconds,
				idempotency_key, created_at) SELECT $1, tenant_id, project_id, instance_id, id, node_id, 'FETCH_ARTIFACT', '{}',
				'', 1, 'RUNNING', 60, $1, $2
				FROM member WHERE node_id IS NOT NULL ORDER BY id LIMIT 1`, []any{made.Task, time.Now()}},
			{`INSERT INTO node_credential (id, node_id, secret_hash, expires_at, created_at)
				SELECT $1::text, node_id, sha256(convert_to($1::text, 'UTF8')), now() + interval '1 day', now() FROM node_task
				WHERE id = $2`, []any{made.Credential, made.Task}},
		} {
			if _, err := t.Exec(ctx, one.sql, one.args...); err != nil {
				return err
			}
		}
		return t.QueryRow(ctx, `SELECT node_id FROM node_task WHERE id = $1`, made.Task).Scan((*string)(&made.Node))
	})
	if err != nil {
		return made, fmt.Errorf("make a fetch: %w", err)
	}
	return made, nil
}

// ForgetFetch deletes what Fetch created.
func (s *Set) ForgetFetch(ctx context.Context, made Fetch) (err error) {
	for _, one := range []struct {
		sql string
		id  ids.ID
	}{
		{`DELETE FROM node_credential WHERE id = $1`, made.Credential},
		{`DELETE FROM node_task WHERE id = $1`, made.Task},
		{`DELETE FROM artifact_part WHERE artifact_id = $1`, made.Artifact},
		{`DELETE FROM artifact WHERE id = $1`, made.Artifact}, {`DELETE FROM artifact_source
			WHERE id = $1`, made.source},
	} {
		_, failed := s.Admin.Exec(ctx, one.sql, one.id)
		err = errors.Join(err, failed)
	}
	return err
}
