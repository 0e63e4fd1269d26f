package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// watched is a registry that notes which names are shown to it for which repository, and has nothing.
type watched struct {
	*httptest.Server
	lock  sync.Mutex
	shown map[string]string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{shown: map[string]string{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.lock.Lock()
		defer w.lock.Unlock()
		if named := r.Header.Get("Authorization"); named != "" {
			w.shown[r.URL.Path] = named
		}
		out.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		if r.Header.Get("Authorization") == "" {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		out.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(w.Close)
	return w
}

// host is where it listens.
func (w *watched) host() string { return strings.TrimPrefix(w.URL, "http://") }

// asked returns the paths for which a name was shown since the last call.
func (w *watched) asked() (paths []string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for path := range w.shown {
		paths = append(paths, path)
	}
	w.shown = map[string]string{}
	return paths
}

// A tenant's admin points a source at another tenant's repository in the platform's registry. The platform shows its
// own name there for the platform's artifacts, and for the tenant's below the tenant's own path; otherwise it reads
// anonymously.
func TestThePlatformsNameReadsNoOtherTenantsRepository(t *testing.T) {
	t.Parallel()
	registry := newWatched(t)
	b := newBench(t, func(c *Config) {
		c.RegistryHosts, c.InsecureRegistries, c.PullTokens = []string{"127.0.0.0/8"}, []string{registry.host()},
			[]string{registry.host()}
	})
	mine, theirs := b.build(), b.build()
	b.Kit.Source(nil, lifecycle.SourceOCI, registry.host())
	const publish = `mutation($input: PublishArtifactInput!) { publishArtifact(input: $input) { id } }`
	digest := platformtest.Digest([]byte("private"))
	get := func(token, repository string, more object) answer {
		input := object{"name": "loot", "ref": registry.host() + "/" + repository + "@" + digest, "digest": digest,
			"idempotencyKey": repository}
		for name, value := range more {
			input[name] = value
		}
		return b.post(token, publish, arguments{"input": input})
	}
	slug := func(h *house) (slug string) {
		require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT slug FROM tenant WHERE id = $1`, h.Tenant).Scan(&slug))
		return slug
	}
	private := "tenants/" + slug(theirs) + "/private"
	in := object{"projectId": mine.Project}

	refused := get(mine.admin, private, in)
	require.Equal(t, string(fault.ArtifactUnavailable), refused.code(), refused.Raw)
	require.Contains(t, refused.Raw, "without a credential")
	require.Empty(t, registry.asked(), "through the platform's source")
	made := b.post(mine.admin,
		`mutation($input: CreateArtifactSourceInput!) { createArtifactSource(input: $input) { id } }`,
		arguments{"input": object{
			"tenantId": mine.Tenant, "name": "loot", "kind": "OCI",
			"location":        registry.host() + "/tenants/" + slug(theirs),
			"signaturePolicy": "OPTIONAL", "idempotencyKey": "k"}})
	require.Empty(t, made.Errors, made.Raw)
	require.Equal(t, string(fault.ArtifactUnavailable), get(mine.admin, private+"2", in).code())
	require.Empty(t, registry.asked(), "through a source of the tenant's own")
	require.Zero(t, b.Count("artifact", "name = 'loot'"))

	get(mine.admin, "tenants/"+slug(mine)+"/own", in)
	require.NotEmpty(t, registry.asked(), "in the tenant's part of it")
	get(b.Session(b.Operator()), "apps/one", nil)
	require.NotEmpty(t, registry.asked(), "for the platform's own")
}

// A publisher pins an artifact of its own by a text that names another tenant's repository: what the text says would be
// where a pull token lets its holder read.
func TestAManifestNamesThePlaceOfTheArtifactThatItPins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine := b.build()
	app := b.App("apps")
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2 WHERE id = $3`, mine.Tenant, mine.Project,
		app.ID)
	owned, err := b.Ent.Artifact.Get(t.Context(), mine.Owned)
	require.NoError(t, err)
	adapter := b.Adapter("http://adapter.test", nil)
	publish := func(ref, key string) answer {
		forged := *owned
		forged.MediaType = "application/vnd.oci.image.manifest.v1+json"
		forged.Ref = ref
		return b.post(mine.robot, `mutation($input: PublishManifestInput!) { publishManifest(input: $input) { id } }`,
			arguments{"input": object{"document": platformtest.Document(app, "1.0.0", adapter, &forged),
				"idempotencyKey": key}})
	}
	before := b.fingerprint()
	refused := publish("registry.test/tenant-b/private@"+owned.Digest, "forged")
	require.Equal(t, string(fault.ManifestInvalid), refused.code(), refused.Raw)
	require.Contains(t, refused.paths(), "input.document.artifacts.0.ref")
	require.Equal(t, before, b.fingerprint())
	honest := publish(owned.Ref, "honest")
	require.Empty(t, honest.Errors, honest.Raw)
}

// What a tenant has not released no other tenant can read, by any way; what it has released everyone can.
func TestDraftsAndWhatOnlyTheyPinAreTheirPublishers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, theirs := b.build(), b.build()
	viewer := b.Session(b.Kit.User(&db.Tenant{ID: theirs.Tenant}, platformtest.In(authz.ProjectViewer, theirs.project)))
	owned, err := b.Ent.Artifact.Get(t.Context(), mine.Owned)
	require.NoError(t, err)
	ways := map[string]func(token string) string{
		"manifests": func(token string) string {
			return b.post(token,
				`{ manifests(stages: [DRAFT, STAGED], first: 100) { edges { node { id appSlug digest document artifacts { id ref } } } } }`, nil).Data
		},
		"a version by id": func(token string) string {
			return b.post(token, `query($id: ID!) { node(id: $id) { id ... on Manifest { document } } }`,
				arguments{"id": mine.Draft}).Data
		},
		"its app": func(token string) string {
			return b.post(token,
				`{ apps(first: 100) { edges { node { slug icon manifests(first: 50) { edges { node { id document } } } } } } }`, nil).Data
		},
		"an artifact by id": func(token string) string {
			return b.post(token, `query($id: ID!) { node(id: $id) { id ... on Artifact { ref } } }`,
				arguments{"id": mine.Owned}).Data
		},
		"an artifact by digest": func(token string) string {
			return b.post(token,
				`query($digest: String!, $tenant: ID!) { artifact(digest: $digest, tenantId: $tenant) { id ref } }`,
				arguments{"digest": owned.Digest, "tenant": mine.Tenant}).Data
		},
		"artifacts": func(token string) string {
			return b.post(token, `{ artifacts(first: 100) { edges { node { id ref } } } }`, nil).Data
		},
	}
	tells := func(said string) bool {
		return strings.Contains(said, string(mine.Draft)) || strings.Contains(said, string(mine.Owned)) ||
			strings.Contains(said, owned.Ref)
	}
	staff := b.Session(b.Operator())
	for _, stage := range []lifecycle.Stage{lifecycle.StageDraft, lifecycle.StageStaged} {
		b.SQL(`ALTER TABLE manifest DISABLE TRIGGER USER`)
		b.SQL(`UPDATE manifest SET stage = $1 WHERE id = $2`, stage, mine.Draft)
		for name, way := range ways {
			require.False(t, tells(way(viewer)), "%s %s, to another tenant's viewer", name, stage)
			require.False(t, tells(way(theirs.robot)), "%s %s, to another tenant's account", name, stage)
			require.True(t, tells(way(mine.admin)), "%s %s, to its publisher", name, stage)
			require.True(t, tells(way(staff)), "%s %s, to the platform's staff", name, stage)
		}
	}
	b.SQL(`UPDATE manifest SET stage = 'ACTIVE' WHERE id = $1`, mine.Draft)
	require.True(t, tells(ways["a version by id"](viewer)), "once it is released")
	require.True(t, tells(ways["an artifact by id"](viewer)), "once it is released")
}

// Whether an id is another tenant's or does not exist makes no difference to an explanation.
func TestAnExplanationDoesNotTellWhetherAForeignIDExists(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, theirs := b.build(), b.build()
	const why = `query($input: ExplainPermissionInput!) { explainPermission(input: $input) { allowed missing { message } askWhom { id } } }`
	said := func(token string, input object, id string) string {
		got := b.post(token, why, arguments{"input": input})
		text := got.code()
		for _, refused := range got.Errors {
			text += " " + refused.Message
		}
		return strings.ReplaceAll(text+got.Data, id, "ID")
	}
	for _, id := range theirs.secrets() {
		kind, _, _ := strings.Cut(id, "_")
		if !ids.ID(id).Valid() {
			continue
		}
		unknown := string(ids.New(ids.Kind(kind)))
		for name, token := range map[string]string{"an admin": mine.admin, "an account": mine.robot} {
			for _, key := range []string{"apps.instance.read", "manifest.read", "node.read", "identity.user.read"} {
				require.Equal(t, said(token, object{"permissionKey": key, "objectId": unknown}, unknown),
					said(token, object{"permissionKey": key, "objectId": id}, id), "%s on %s, to %s", key, id, name)
			}
			for _, input := range []object{{"permissionKey": "project.read"},
				{"permissionKey": "project.read", "objectId": mine.Project}} {
				of := func(subject string) string {
					input["subjectId"] = subject
					return said(token, input, subject)
				}
				require.Equal(t, of(unknown), of(id), "about %s, to %s", id, name)
			}
		}
	}
}

// By which name the platform is known at a registry is for its staff.
func TestTheNameAtThePlatformsSourcesIsForItsStaff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine := b.build()
	shared := b.Kit.Source(nil, lifecycle.SourceOCI, "registry.test/shared")
	b.SQL(`UPDATE artifact_source SET credential_user = 'known-as'`)
	const list = `{ artifactSources(first: 100) { edges { node { id credentialUser } } } }`
	const one = `query($id: ID!) { node(id: $id) { ... on ArtifactSource { credentialUser } } }`
	for name, token := range map[string]string{"an admin": mine.admin, "an account": mine.robot} {
		require.Equal(t, 1, strings.Count(b.post(token, list, nil).Data, "known-as"), "%s sees the tenant's own", name)
		require.NotContains(t, b.post(token, one, arguments{"id": shared.ID}).Data, "known-as", name)
		require.Contains(t, b.post(token, one, arguments{"id": mine.Source}).Data, "known-as", name)
	}
	require.Contains(t, b.post(b.Session(b.Operator()), one, arguments{"id": shared.ID}).Data, "known-as")
}
