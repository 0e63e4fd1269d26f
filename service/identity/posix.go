package identity

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/posix"
)

// posixOwner is a POSIX identity and its owner; a person has no project.
type posixOwner struct {
	posix.Identity
	id, tenant, project ids.ID
	key                 authz.Key
}

// posixSQL reads the identities of people and service accounts in the tenant that they belong to.
const posixSQL = `SELECT i.name, i.uid, s.id, s.tenant_id, s.project_id FROM posix_identity i JOIN (
		SELECT id, tenant_id, '' AS project_id FROM person WHERE id = ANY ($1)
		UNION ALL SELECT id, tenant_id, project_id FROM service_account WHERE id = ANY ($1)
	) s ON s.id = i.subject_id AND s.tenant_id = i.tenant_id`

func scanPosix(row pgx.CollectableRow) (*posixOwner, error) {
	x := &posixOwner{key: authz.UserRead}
	err := row.Scan(&x.Name, &x.UID, &x.id, &x.tenant, &x.project)
	x.GID = x.UID
	if x.project != "" {
		x.key = authz.ServiceAccountRead
	}
	return x, err
}

// PosixOf reads the POSIX identities of several people and service accounts at once, each in the tenant that it belongs
// to; those that no app has needed yet have none. Keys: identity.user.read and identity.service_account.read where they
// belong; what the caller may not see is left out, but for its own.
func (s *Service) PosixOf(ctx context.Context, subjects []ids.ID) (map[ids.ID]*posix.Identity, error) {
	var found []*posixOwner
	actor, err := s.DB.Read(ctx, tx.Rows(&found, scanPosix, posixSQL, texts(subjects)))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]*posix.Identity, len(found))
	for _, one := range found {
		if one.id == actor.ID || actor.Allows(one.key, one.tenant, one.project) {
			out[one.id] = &one.Identity
		}
	}
	return out, nil
}
