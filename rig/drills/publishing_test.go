package drills_test

import (
	"context"
	"crypto"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/ociregistry"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// registry is a publisher's registry, which the platform may read: it stores what is pushed, and a drill may break its
// answers.
type registry struct {
	w     *ward
	store http.Handler
	// repository is where the drill pushes; ref, digest and artifact are what it pushed and published.
	repository, ref, digest string
	source                  string
}

// bytesOf is how large a pushed artifact is.
const bytesOf = 64 << 10

// opens gives the drill a registry, without a source.
func (w *ward) opens() *registry {
	w.t.Helper()
	store, err := ociregistry.New(w.t.TempDir())
	w.fine(err)
	r := &registry{w: w, store: store, repository: files.host + "/drill-" + client.NewKey()[:10]}
	r.works()
	w.later(func(context.Context) { files.answers(nil) })
	r.push()
	return r
}

// works has the registry answer as it should.
func (r *registry) works() { files.answers(r.store.ServeHTTP) }

// breaks has the registry answer wrongly where its parts are read.
func (r *registry) breaks(with http.HandlerFunc) {
	files.answers(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet && strings.Contains(request.URL.Path, "/blobs/") {
			with(w, request)
			return
		}
		r.store.ServeHTTP(w, request)
	})
}

// push stores an image that exists nowhere else.
func (r *registry) push() {
	r.w.t.Helper()
	content := filepath.Join(r.w.t.TempDir(), "content")
	r.w.fine(os.WriteFile(content, []byte(strings.Repeat(client.NewKey(), bytesOf/26)), 0o600))
	layout := filepath.Join(r.w.t.TempDir(), "layout")
	digest, err := publish.Build(layout, publish.Image{Files: []publish.File{{From: content}}, User: "65532:65532",
		Platform: "linux/" + runtime.GOARCH})
	r.w.fine(err)
	pushed, err := publish.Registry{PlainHTTP: true}.PushLayout(r.w.ctx, layout, r.repository+":"+digest[7:19])
	r.w.fine(err)
	r.ref, r.digest = pushed.Ref, pushed.Digest
}

// covered makes the registry a source of the platform's.
func (r *registry) covered(policy gql.SignaturePolicy) *registry {
	r.w.t.Helper()
	made, err := gql.CreateArtifactSource(r.w.ctx, r.w.operator, gql.CreateArtifactSourceInput{
		Name: "drill-" + client.NewKey()[:10], Kind: gql.SourceKindOci, Location: r.repository, SignaturePolicy: policy,
		IdempotencyKey: client.NewKey()})
	r.w.fine(err)
	r.source = made.CreateArtifactSource.Id
	r.w.later(func(ctx context.Context) {
		_, err := gql.UpdateArtifactSource(ctx, shared.Operator, gql.UpdateArtifactSourceInput{SourceId: r.source,
			Disabled: to(true), Reason: "the drill is over"})
		r.w.fine(err)
	})
	return r
}

// publish publishes what was pushed.
func (r *registry) publish() error {
	made, err := gql.PublishArtifact(r.w.ctx, r.w.operator, gql.PublishArtifactInput{Name: "drill",
		MediaType: signing.ManifestType, Ref: r.ref, IdempotencyKey: client.NewKey()})
	if err == nil {
		r.w.about.ArtifactID = made.PublishArtifact.Id
	}
	return err
}

// signed signs what was pushed with a new key.
func (r *registry) signed() crypto.Signer {
	r.w.t.Helper()
	key, err := signing.NewKey(signing.ECDSA)
	r.w.fine(err)
	r.sign(key)
	return key
}

func (r *registry) sign(key crypto.Signer) {
	r.w.t.Helper()
	_, err := publish.Registry{PlainHTTP: true}.Sign(r.w.ctx, r.ref, key, false)
	r.w.fine(err)
}

// trusts has the source trust a key, and returns its id.
func (r *registry) trusts(key crypto.Signer, until *time.Time) string {
	r.w.t.Helper()
	text, err := signing.EncodePublic(key.Public())
	r.w.fine(err)
	made, err := gql.AddSignerKey(r.w.ctx, r.w.operator, gql.AddSignerKeyInput{SourceId: r.source,
		Name: "drill-" + client.NewKey()[:8], PublicKey: string(text), ValidUntil: until})
	r.w.fine(err)
	return made.AddSignerKey.Id
}

// verify checks the artifact again.
func (r *registry) verify() {
	r.w.t.Helper()
	_, err := gql.VerifyArtifact(r.w.ctx, r.w.operator, r.w.about.ArtifactID)
	if err != nil {
		require.NotEqual(r.w.t, client.CodeNotFound, client.CodeOf(err), "%v", err)
	}
}

// otherBytes are parts that are not those of their digests.
func otherBytes(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(strings.Repeat("x", bytesOf)))
}

// policy sets the platform's policy for the drill.
func (w *ward) policy(document string) {
	w.t.Helper()
	revision := 0
	listed, err := gql.ListPolicyOverlays(w.ctx, w.operator, "", "", 1, "")
	w.fine(err)
	for _, edge := range listed.PolicyOverlays.Edges {
		revision = edge.Node.Revision
	}
	_, err = gql.SetPolicy(w.ctx, w.operator, gql.SetPolicyInput{Document: []byte(document), ExpectedRevision: revision,
		Reason: "a drill"})
	w.fine(err)
}

// unpublished drills what a publisher meets: a registry that answers wrongly, until it is mended.
func unpublished(with http.HandlerFunc) drill {
	return drill{
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyOptional)
			r.breaks(with)
			w.mend = r.works
			w.refused(r.publish)
		},
		cure: func(w *ward) { w.mend() },
	}
}

// publishingDrills are those of artifacts that cannot be published, are in quarantine, or should be.
var publishingDrills = map[string]drill{
	"artifact/is-not-published/source-unknown-at-input-ref": {
		quick: true,
		fault: func(w *ward) {
			r := w.opens()
			w.mend = func() { r.covered(gql.SignaturePolicyOptional) }
			w.refused(r.publish)
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-not-published/policy-denied-at-input-ref": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyOptional)
			w.policy(`{"artifactSources": {"deny": ["` + r.repository + `"]}}`)
			allowed := false
			w.mend = func() {
				if !allowed {
					allowed = true
					w.policy(`{}`)
				}
			}
			w.later(func(ctx context.Context) { w.ctx = ctx; w.mend() })
			w.refused(r.publish)
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-not-published/invalid-argument-at-input-digest": {
		fault: func(w *ward) {
			made, err := gql.CreateArtifactSource(w.ctx, w.operator, gql.CreateArtifactSourceInput{
				Name: "drill-" + client.NewKey()[:10], Kind: gql.SourceKindHttps,
				Location:        "https://" + files.host + "/weights/",
				SignaturePolicy: gql.SignaturePolicyOptional, IdempotencyKey: client.NewKey()})
			w.fine(err)
			w.later(func(ctx context.Context) {
				_, err := gql.UpdateArtifactSource(ctx, shared.Operator, gql.UpdateArtifactSourceInput{
					SourceId: made.CreateArtifactSource.Id, Disabled: to(true), Reason: "the drill is over"})
				w.fine(err)
			})
			files.answers(func(rw http.ResponseWriter, r *http.Request) {
				http.ServeContent(rw, r, "", time.Time{}, strings.NewReader("weights"))
			})
			digest := ""
			w.mend = func() { digest = "sha256:" + weightsDigest }
			w.refused(func() error {
				_, err := gql.PublishArtifact(w.ctx, w.operator, gql.PublishArtifactInput{Name: "weights",
					MediaType: "application/octet-stream", Ref: "https://" + files.host + "/weights/v1.bin",
					Digest:         digest,
					IdempotencyKey: client.NewKey()})
				return err
			})
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-not-published/dial-refused": unpublished(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.9:9"+r.URL.Path, http.StatusTemporaryRedirect)
	}),
	"artifact/is-not-published/artifact-unavailable": unpublished(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
	}),
	"artifact/is-not-published/digest-mismatch": unpublished(otherBytes),
	"artifact/is-not-published/signature-missing": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyRequired)
			key, err := signing.NewKey(signing.ECDSA)
			w.fine(err)
			r.trusts(key, nil)
			w.mend = func() { r.sign(key) }
			w.refused(r.publish)
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-not-published/signature-untrusted": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyRequired)
			key := r.signed()
			w.mend = func() { r.trusts(key, nil) }
			w.refused(r.publish)
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-not-published/conflict": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyOptional)
			w.fine(r.publish())
			first := w.about.ArtifactID
			again := r.repository + ":" + r.digest[7:19]
			w.refused(func() error {
				made, err := gql.PublishArtifact(w.ctx, w.operator,
					gql.PublishArtifactInput{Name: "another", MediaType: "text/plain",
						Ref: again, IdempotencyKey: client.NewKey()})
				if err == nil {
					w.about.ArtifactID = made.PublishArtifact.Id
				}
				return err
			})
			w.mend = func() { // the one that is there is used
				w.request, w.about.Refused = nil, nil
				got, err := gql.GetArtifact(w.ctx, w.operator, r.digest, "")
				w.fine(err)
				require.Equal(w.t, first, got.Artifact.Id)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-in-quarantine/by-signature": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyQuarantine)
			key := r.signed()
			w.fine(r.publish())
			w.mend = func() { r.trusts(key, nil); r.verify() }
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-in-quarantine/by-digest": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyOptional)
			w.fine(r.publish())
			r.breaks(otherBytes)
			r.verify()
			w.mend = func() { r.works(); r.verify() }
		},
		cure: func(w *ward) { w.mend() },
	},
	"artifact/is-in-quarantine/by-hand": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyOptional)
			w.fine(r.publish())
			_, err := gql.QuarantineArtifact(w.ctx, w.operator, w.about.ArtifactID, "CVE-2026-0001")
			w.fine(err)
		},
		cure: func(w *ward) {
			_, err := gql.ReleaseArtifact(w.ctx, w.operator, w.about.ArtifactID, "not affected")
			w.fine(err)
		},
	},
	"artifact/wrong-or-harmful-artifact-was-published/harmful": {
		fault: func(w *ward) { w.fine(w.opens().covered(gql.SignaturePolicyOptional).publish()) },
		cure: func(w *ward) {
			_, err := gql.QuarantineArtifact(w.ctx, w.operator, w.about.ArtifactID, "CVE-2026-0001")
			w.fine(err)
			_, err = gql.PromoteArtifact(w.ctx, w.operator, gql.PromoteArtifactInput{ArtifactId: w.about.ArtifactID,
				To: gql.StageStaged, Reason: "nobody gets it"})
			require.Equal(w.t, "ARTIFACT_QUARANTINED", client.CodeOf(err))
		},
	},
	"artifact/key-is-lost/lost": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyQuarantine)
			lost := r.signed()
			id := r.trusts(lost, nil)
			w.fine(r.publish())
			w.mend = func() {
				_, err := gql.RevokeSignerKey(w.ctx, w.operator, id, "it was on a stolen laptop")
				w.fine(err)
				r.verify()
				got, err := gql.GetArtifact(w.ctx, w.operator, r.digest, "")
				w.fine(err)
				require.NotNil(w.t, got.Artifact.QuarantinedAt, "what the lost key has signed is not trusted")
				r.trusts(r.signed(), nil)
				r.verify()
				got, err = gql.GetArtifact(w.ctx, w.operator, r.digest, "")
				w.fine(err)
				require.Nil(w.t, got.Artifact.QuarantinedAt, "what its successor has signed is")
			}
		},
		cure: func(w *ward) { w.mend() },
	},
}

// weightsDigest is the SHA-256 of "weights".
const weightsDigest = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"
