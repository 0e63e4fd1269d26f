package drills_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/stretchr/testify/assert"

	"github.com/gpuaas/app-platform/rig/chaos"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// broken is an app that does not start.
func broken(context.Context, *adapter.Run) error {
	return adapter.Fail("APP_BROKEN", adapter.OwnerAdapter, false, "its own check fails")
}

// fetches brings what the version pins to its members, and reports what the node says of a failure as its own.
func fetches(ctx context.Context, run *adapter.Run) error {
	for _, member := range run.Dispatch().Members {
		for _, pin := range run.Instance().Artifacts {
			result, err := run.Try(ctx, member, "fetch", adapter.FetchArtifact{Digest: pin.Digest, Path: "/srv/image",
				As: "oci_layout"})
			if err != nil {
				return err
			}
			if result.State != adapter.TaskSucceeded {
				var said struct{ Code string }
				_ = json.Unmarshal(result.Raw, &said)
				return adapter.Fail(said.Code, adapter.OwnerNode, true, "fetching: %s", result.Message)
			}
		}
	}
	return alive(ctx, run)
}

// undelivered launches a version whose artifact does not reach the node, after the fault, and launches it again after
// the cure: a failed create is torn down, and the launch is requested again.
func undelivered(fault func(w *ward, r *release)) drill {
	return drill{
		fault: func(w *ward) {
			r := w.releases(nil)
			does(&r.create, fetches)
			_, version := r.draft()
			w.walker.Person = shared.Operator
			fault(w, r)
			instance, operation := r.smoke(version)
			w.about.ID, w.about.ArtifactID = operation, "" // the operation is all that is known
			w.ends(operation)
			mend := w.mend
			w.mend = func() {
				mend()
				_, err := gql.DecommissionInstance(w.ctx, w.operator,
					gql.DecommissionInstanceInput{InstanceId: instance,
						Reason: "the create failed", IdempotencyKey: client.NewKey()})
				w.fine(err)
				_, again := r.smoke(version)
				w.about.ID = again
				w.succeeds(again)
			}
		},
		cure: func(w *ward) { w.mend() },
	}
}

var fetchDrills = map[string]drill{
	"artifact/does-not-reach-a-node/digest-mismatch": undelivered(func(w *ward, r *release) {
		r.breaks(otherBytes)
		w.mend = r.works
	}),
	"artifact/does-not-reach-a-node/artifact-unavailable": undelivered(func(w *ward, r *release) {
		r.breaks(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
		w.mend = r.works
	}),
	"artifact/does-not-reach-a-node/artifact-quarantined": undelivered(func(w *ward, r *release) {
		artifact := w.about.ArtifactID
		var once sync.Once
		r.breaks(func(rw http.ResponseWriter, request *http.Request) { // as the node begins to fetch it
			once.Do(func() {
				_, err := gql.QuarantineArtifact(request.Context(), shared.Operator, artifact, "CVE-2026-0001")
				assert.NoError(w.t, err)
			})
			rw.WriteHeader(http.StatusServiceUnavailable)
		})
		w.mend = func() {
			r.works()
			_, err := gql.ReleaseArtifact(w.ctx, w.operator, artifact, "not affected")
			w.fine(err)
		}
	}),
	"artifact/does-not-reach-a-node/disk-full": undelivered(func(w *ward, _ *release) {
		cache := filepath.Join(filepath.Dir(shared.LogDir()), "nodes", "node-1", "agent", "cache")
		there, err := os.ReadDir(cache)
		w.fine(err)
		disk, err := chaos.Mount(cache, 4<<10) // less than its parts take, one page of the disk each
		w.fine(err)
		full := true
		unmount := func() {
			if full {
				full = false
				w.fine(disk.Unmount())
			}
		}
		w.mend = unmount
		w.later(func(context.Context) { unmount() })
		for _, one := range there { // the agent made its folders as it started
			if one.IsDir() {
				w.fine(os.Mkdir(filepath.Join(cache, one.Name()), 0o700))
			}
		}
	}),
}
