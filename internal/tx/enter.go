package tx

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// enterSQL resolves who is calling and sets the scope that the policies read.
const enterSQL = `SELECT subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires, limits,
	clock_timestamp() FROM platform.enter($1, $2, $3)`

// enterOpeningSQL is enterSQL for an endpoint that was opened in a browser.
const enterOpeningSQL = `SELECT subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires,
	limits, clock_timestamp() FROM platform.enter_opening($2, $3) WHERE $1 = 'opening'`

// enterOperatorSQL is enterSQL for an adapter that acts for one instance, by the account that was chosen for it.
const enterOperatorSQL = `SELECT subject_kind, subject_id, subject_name, tenant, project, bindings, allow, expires,
	limits, clock_timestamp(), own FROM platform.enter_operator($1, $2, $3)`

// queue adds to a batch the statement that resolves whose credential it is.
func (e *entered) queue(batch *pgx.Batch, credential Credential) {
	if credential.kind == operator {
		batch.Queue(enterOperatorSQL, string(credential.claims.Instance), string(credential.id),
			string(credential.claims.ServiceKey)).QueryRow(e.scanOperator)
		return
	}
	sql := enterSQL
	if credential.kind == opening {
		sql = enterOpeningSQL
	}
	batch.Queue(sql, credential.kind, string(credential.id), credential.hash).QueryRow(e.scan)
}

// expired is the kind that platform.enter answers for a key that was good once.
const expired = "EXPIRED"

// errUnknown is the one answer to a credential that is unknown, revoked or ended.
func errUnknown() error {
	return fault.New(fault.Unauthenticated, "the credential is unknown, revoked or expired")
}

// entered is what platform.enter answers.
type entered struct {
	kind, id, name, tenant, project *string
	bindings, allow, limits         []byte
	expires                         *time.Time
	now                             time.Time // the database's
	own                             []byte    // the adapter's own account, of a token for an instance
}

func (e *entered) scan(row pgx.Row) error {
	return row.Scan(&e.kind, &e.id, &e.name, &e.tenant, &e.project, &e.bindings, &e.allow, &e.expires,
		&e.limits, &e.now)
}

func (e *entered) scanOperator(row pgx.Row) error {
	return row.Scan(&e.kind, &e.id, &e.name, &e.tenant, &e.project, &e.bindings, &e.allow, &e.expires,
		&e.limits, &e.now, &e.own)
}

// actor returns the caller with its rights; UNAUTHENTICATED when the credential names no caller, TOKEN_EXPIRED when it
// is a key or a signed token that has expired.
func (e *entered) actor(credential Credential, cache *actorCache) (*authz.Actor, error) {
	now := e.now.UTC()
	switch {
	case e.kind == nil:
		return nil, errUnknown()
	case *e.kind == expired:
		return nil, fault.New(fault.TokenExpired, "the key has expired")
	}
	// The token was verified while it was valid, perhaps long ago.
	if ends := credential.claims.ExpiresAt; !ends.IsZero() && !now.Before(ends) {
		return nil, fault.New(fault.TokenExpired, "the token has expired")
	}
	if err := e.acts(credential, now); err != nil {
		return nil, err
	}
	if actor := cache.get(credential, e, now); actor != nil {
		return actor, nil
	}
	subject := e.subject(credential)
	var bindings []authz.Binding
	allow, err := e.allowed(credential)
	if err != nil {
		return nil, err
	}
	if subject.Kind == authz.KindServiceAccount {
		named := len(allow) > 0
		if allow, err = e.vouched(allow, now); err != nil {
			return nil, err
		}
		if named && len(allow) == 0 {
			return nil, errUnknown() // it ended with whoever made it
		}
	} else if bindings, err = parseBindings(e.bindings); err != nil {
		return nil, err
	}
	if err := e.limit(&subject); err != nil {
		return nil, err
	}
	if credential.kind == operator {
		within, ok := subject.Limits.Within(credential.claims.Instance)
		if !ok {
			return nil, errUnknown() // the account is limited to other objects since
		}
		subject.Limits = within
	}
	actor := authz.NewActor(subject, bindings, allow, now)
	cache.put(credential, e, actor)
	return actor, nil
}

func (e *entered) subject(credential Credential) authz.Subject {
	subject := authz.Subject{
		Kind: authz.Kind(*e.kind), ID: ids.ID(*e.id), Name: deref(e.name), CredentialID: credential.ID(),
		TenantID: ids.ID(deref(e.tenant)), ProjectID: ids.ID(deref(e.project)),
		InstanceID: credential.claims.Instance, ExpiresAt: credential.claims.ExpiresAt,
	}
	if act := credential.claims.Act; act != nil {
		subject.For = authz.Ref{Kind: act.Kind, ID: act.Subject, Name: act.Name}
	}
	if e.expires != nil && (subject.ExpiresAt.IsZero() || e.expires.Before(subject.ExpiresAt)) {
		subject.ExpiresAt = *e.expires
	}
	switch subject.Kind {
	case authz.KindNode:
		subject.NodeID = subject.ID
	case authz.KindEnrolment: // platform.enter answers the id its node will have
		subject.NodeID, subject.ProjectID = subject.ProjectID, ""
	}
	return subject
}

// allowed returns the allow-list: the row's, or the token's, or the keys that both name when a key was exchanged for a
// token with fewer keys.
func (e *entered) allowed(credential Credential) ([]string, error) {
	if e.allow == nil {
		return credential.claims.Keys, nil
	}
	var allow []string
	if err := json.Unmarshal(e.allow, &allow); err != nil {
		return nil, err
	}
	if len(credential.claims.Keys) == 0 {
		return allow, nil
	}
	return slices.DeleteFunc(allow, func(key string) bool { return !slices.Contains(credential.claims.Keys, key) }), nil
}

// limit reads what a service account is limited to beyond its keys.
func (e *entered) limit(subject *authz.Subject) error {
	if e.limits == nil {
		return nil
	}
	return json.Unmarshal(e.limits, &subject.Limits)
}

// platform reports whether the caller has a role at platform scope.
func platform(actor *authz.Actor) bool {
	return actor.Kind == authz.KindUser && actor.Reach().Platform
}

func parseBindings(raw []byte) ([]authz.Binding, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var rows []struct {
		Role    authz.Role `json:"role"`
		Tenant  ids.ID     `json:"tenant"`
		Project ids.ID     `json:"project"`
		Expires *time.Time `json:"expires"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	bindings := make([]authz.Binding, len(rows))
	for i, row := range rows {
		bindings[i] = authz.Binding{Role: row.Role, TenantID: row.Tenant, ProjectID: row.Project}
		if row.Expires != nil {
			bindings[i].ExpiresAt = *row.Expires
		}
	}
	return bindings, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// maxActors bounds the cache of compiled actors.
const maxActors = 4_096

// actorCache keeps compiled actors. It never decides anything: an entry is used only when the
// rows just fetched are byte for byte those it was compiled from.
type actorCache struct {
	mu      sync.RWMutex
	entries map[string]cachedActor
}

type cachedActor struct {
	bindings, allow, limits string
	actor                   *authz.Actor
}

func (c *actorCache) get(credential Credential, e *entered, now time.Time) *authz.Actor {
	c.mu.RLock()
	entry, ok := c.entries[credential.ID()]
	c.mu.RUnlock()
	if !ok || entry.bindings != string(e.bindings) || entry.allow != string(e.allow) ||
		entry.limits != string(e.limits) ||
		entry.actor.Name != deref(e.name) {
		return nil
	}
	if at := entry.actor.RefreshAt(); !at.IsZero() && !now.Before(at) {
		return nil
	}
	return entry.actor
}

// last returns the actor that was compiled last for a credential; nil for none.
func (c *actorCache) last(credential Credential) *authz.Actor {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[credential.ID()].actor
}

func (c *actorCache) put(credential Credential, e *entered, actor *authz.Actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxActors {
		c.entries = make(map[string]cachedActor)
	}
	c.entries[credential.ID()] = cachedActor{bindings: string(e.bindings), allow: string(e.allow),
		limits: string(e.limits), actor: actor}
}
