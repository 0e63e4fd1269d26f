package drills_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// override is why the drills' versions take steps without a runner's smokes, launches and time.
const override = "a drill"

// release is an app of a drill's own, with its adapter and what it pins.
type release struct {
	*registry
	*player
	slug     string
	document map[string]json.RawMessage
	number   int
}

// releases creates an app that no one has launched. change may change its manifest's document.
func (w *ward) releases(change func(document map[string]json.RawMessage)) *release {
	w.t.Helper()
	out := &release{registry: w.opens().covered(gql.SignaturePolicyOptional), slug: "drill-" + client.NewKey()[:10]}
	w.fine(out.publish())
	w.fine(json.Unmarshal(w.appManifest(), &out.document))
	for key, value := range map[string]any{"app": out.slug, "adapter": out.slug, "artifactKind": "oci",
		"artifacts": []map[string]string{{"name": "image", "mediaType": signing.ManifestType, "ref": out.ref,
			"digest": out.digest}}} {
		out.set(key, value)
	}
	delete(out.document, "lifecycle")
	if change != nil {
		change(out.document)
	}
	_, err := gql.CreateApp(w.ctx, w.operator, gql.CreateAppInput{Slug: out.slug, DisplayName: out.slug,
		Summary: "A drill's.", PermissionFamily: "apps", System: w.system, IdempotencyKey: client.NewKey()})
	w.fine(err)
	out.player = w.performs(out.slug, out.encoded())
	for _, project := range slices.Compact([]string{w.project, w.smokes}) {
		_, err = gql.GrantEntitlement(w.ctx, w.operator, project, out.slug, nil, nil, "")
		w.fine(err)
	}
	w.about.AppSlug = out.slug
	return out
}

func (r *release) set(key string, value any) {
	encoded, err := json.Marshal(value)
	r.w.fine(err)
	r.document[key] = encoded
}

func (r *release) encoded() []byte {
	encoded, err := json.Marshal(r.document)
	r.w.fine(err)
	return encoded
}

// draft publishes the app's next version, which the walk is then about.
func (r *release) draft() (id, version string) {
	w := r.w
	w.t.Helper()
	r.number++
	version = fmt.Sprintf("1.%d.0", r.number)
	r.set("version", version)
	made, err := gql.PublishManifest(w.ctx, w.operator, gql.PublishManifestInput{Document: r.encoded(),
		IdempotencyKey: client.NewKey()})
	w.fine(err)
	w.about.ManifestID = made.PublishManifest.Id
	return made.PublishManifest.Id, version
}

// artifact takes the pinned artifact up to a stage.
func (r *release) artifact(to gql.Stage) {
	w := r.w
	w.t.Helper()
	for _, stage := range []gql.Stage{gql.StageStaged, gql.StageCanary, gql.StageActive} {
		_, err := gql.PromoteArtifact(w.ctx, w.operator,
			gql.PromoteArtifactInput{ArtifactId: w.about.ArtifactID, To: stage,
				Reason: "a drill", Override: override})
		if err != nil {
			_, err = gql.PromoteArtifact(w.ctx, w.operator,
				gql.PromoteArtifactInput{ArtifactId: w.about.ArtifactID, To: stage,
					Reason: "a drill"})
		}
		if client.CodeOf(err) != "FAILED_PRECONDITION" { // it was further already
			w.fine(err)
		}
		if stage == to {
			return
		}
	}
}

// smoked runs a version's smoke launch and tears it down.
func (r *release) smoked(version string) (instance string) {
	w := r.w
	w.t.Helper()
	instance, operation := r.smoke(version)
	w.succeeds(operation)
	ended, err := gql.DecommissionInstance(w.ctx, w.operator, gql.DecommissionInstanceInput{InstanceId: instance,
		Reason: "the smoke is over", IdempotencyKey: client.NewKey()})
	w.fine(err)
	w.succeeds(ended.DecommissionInstance.Operation.Id)
	return instance
}

// smoke begins a version's smoke launch.
func (r *release) smoke(version string) (instance, operation string) {
	w := r.w
	w.t.Helper()
	launched, err := r.smokeOn(version, w.lab(1))
	w.fine(err)
	return launched.Instance.Id, launched.Operation.Id
}

// lab takes GPUs in the project of smoke launches.
func (w *ward) lab(gpus int) (allocation string) {
	w.t.Helper()
	got, err := gql.RequestAllocation(w.ctx, w.operator, gql.RequestAllocationInput{ProjectId: w.smokes,
		Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: gpus, IdempotencyKey: client.NewKey()})
	w.fine(err)
	allocation = got.RequestAllocation.Allocations[0].Id
	w.givesBack(allocation, w.operator)
	return allocation
}

// smokeOn requests a version's smoke launch on an allocation.
func (r *release) smokeOn(version, allocation string) (*gql.Launch, error) {
	launched, err := gql.LaunchInstance(r.w.ctx, r.w.operator, gql.LaunchInstanceInput{ProjectId: r.w.smokes,
		AppSlug: r.slug, Version: version, Name: "smoke-" + client.NewKey()[:8], AllocationIds: []string{allocation},
		Components: []gql.ComponentInput{{Key: "peer", Count: 1}}, Smoke: true, Reason: "a drill",
		IdempotencyKey: client.NewKey()})
	if err != nil {
		return nil, err
	}
	return &launched.LaunchInstance, nil
}

// promote takes a version one step.
func (r *release) promote(id string, to gql.Stage, smoke string) error {
	in := gql.PromoteManifestInput{ManifestId: id, To: to, Reason: "a drill", SmokeInstanceId: smoke}
	if to == gql.StageCanary {
		in.CanaryPercent, in.Override = new(int), override
		*in.CanaryPercent = 100
	}
	if to == gql.StageActive {
		in.Override = override
	}
	_, err := gql.PromoteManifest(r.w.ctx, r.w.operator, in)
	return err
}

// reaches publishes a version and takes it up to a stage.
func (r *release) reaches(to gql.Stage) (id, version string) {
	w := r.w
	w.t.Helper()
	id, version = r.draft()
	r.artifact(gql.StageActive)
	w.fine(r.promote(id, gql.StageStaged, r.smoked(version)))
	for _, stage := range []gql.Stage{gql.StageCanary, gql.StageActive} {
		if to == gql.StageStaged {
			break
		}
		w.fine(r.promote(id, stage, ""))
		if stage == to {
			break
		}
	}
	return id, version
}

// launches launches the app as its caller changes it, on capacity of its own, and waits for a launch that is accepted.
func (r *release) launches(change func(in *gql.LaunchInstanceInput)) func() error {
	allocation := ""
	return func() error {
		if allocation == "" {
			allocation = r.w.rent()
		}
		instance, operation, err := r.w.launching(func(in *gql.LaunchInstanceInput) {
			in.AppSlug, in.AllocationIds = r.slug, []string{allocation}
			change(in)
		})
		if err == nil {
			r.w.succeeds(operation)
			r.w.about.ID = instance
		}
		return err
	}
}

func plainly(*gql.LaunchInstanceInput) {}

// promotionDrills are those of versions that cannot be launched or promoted, and of artifacts that do not reach a node.
var promotionDrills = map[string]drill{
	"catalog/start/no-active-version": {
		fault: func(w *ward) {
			r := w.releases(nil)
			id, _ := r.reaches(gql.StageStaged)
			w.refused(r.launches(plainly))
			w.mend = func() {
				w.fine(r.promote(id, gql.StageCanary, ""))
				w.fine(r.promote(id, gql.StageActive, ""))
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/start/not-in-canary": {
		fault: func(w *ward) {
			r := w.releases(nil)
			r.reaches(gql.StageActive)
			version := ""
			request := r.launches(func(in *gql.LaunchInstanceInput) { in.Version = version })
			for { // one project of a hundred is in it
				id, next := r.reaches(gql.StageStaged)
				version = next
				_, err := gql.PromoteManifest(w.ctx, w.operator,
					gql.PromoteManifestInput{ManifestId: id, To: gql.StageCanary,
						Reason: "a drill", CanaryPercent: to(1), Override: override})
				w.fine(err)
				if request() != nil {
					break
				}
				w.succeeds(w.decommission(w.about.ID, false))
				w.fine(r.promote(id, gql.StageStaged, ""))
			}
			w.refused(request)
			w.mend = func() { version = "" }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/start/version-deprecated": {
		fault: func(w *ward) {
			r := w.releases(nil)
			_, version := r.reaches(gql.StageActive)
			r.reaches(gql.StageActive)
			w.refused(r.launches(func(in *gql.LaunchInstanceInput) { in.Version = version }))
			w.mend = func() { version = "" }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/start/incompatible": {
		fault: func(w *ward) {
			r := w.releases(func(document map[string]json.RawMessage) {
				document["compatibility"] = json.RawMessage(`{"requires_capacity_shape": ["gpu_slice"], "min_gpu_count": 2,
					"requires_exclusive_node": false, "network_span": "multi_allocation"}`)
			})
			_, version := r.draft()
			r.artifact(gql.StageActive)
			rented := w.lab(1)
			w.refused(func() error {
				launched, err := r.smokeOn(version, rented)
				if err == nil {
					w.succeeds(launched.Operation.Id)
				}
				return err
			})
			w.mend = func() { rented = w.lab(2) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/manifest-that-cannot-be-promoted/staged": {
		fault: func(w *ward) {
			r := w.releases(nil)
			id, version := r.draft()
			r.artifact(gql.StageActive)
			smoke := ""
			w.refused(func() error { return r.promote(id, gql.StageStaged, smoke) })
			w.mend = func() { smoke = r.smoked(version) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/manifest-that-cannot-be-promoted/canary": {
		fault: func(w *ward) {
			r := w.releases(nil)
			first, _ := r.reaches(gql.StageCanary)
			second, _ := r.reaches(gql.StageStaged)
			w.refused(func() error { return r.promote(second, gql.StageCanary, "") })
			w.mend = func() { w.fine(r.promote(first, gql.StageStaged, "")) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/manifest-that-cannot-be-promoted/active": {
		fault: func(w *ward) {
			r := w.releases(nil)
			id, version := r.draft()
			r.artifact(gql.StageCanary)
			w.fine(r.promote(id, gql.StageStaged, r.smoked(version)))
			w.fine(r.promote(id, gql.StageCanary, ""))
			w.refused(func() error { return r.promote(id, gql.StageActive, "") })
			w.mend = func() { r.artifact(gql.StageActive) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/manifest-that-cannot-be-promoted/retired": {
		fault: func(w *ward) {
			r := w.releases(nil)
			id, _ := r.reaches(gql.StageActive)
			w.fine(r.launches(plainly)())
			instance := w.about.ID
			r.reaches(gql.StageActive)
			w.about.ManifestID, w.about.ID = id, ""
			_, err := gql.SetPromotionTerms(w.ctx, w.operator, gql.SetPromotionTermsInput{AppSlug: r.slug,
				Reason: "a drill"})
			w.fine(err)
			w.refused(func() error {
				_, err := gql.PromoteManifest(w.ctx, w.operator,
					gql.PromoteManifestInput{ManifestId: id, To: gql.StageRetired,
						Reason: "nobody needs it", Override: override})
				return err
			})
			w.mend = func() { w.succeeds(w.decommission(instance, false)) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"catalog/canary-was-halted/halted": {
		fault: func(w *ward) {
			r := w.releases(nil)
			id, _ := r.reaches(gql.StageCanary)
			does(&r.create, broken)
			allocation := w.rent()
			for range 12 {
				instance, operation, err := w.launching(func(in *gql.LaunchInstanceInput) {
					in.AppSlug, in.AllocationIds = r.slug, []string{allocation}
				})
				if err != nil {
					break // it was halted
				}
				require.Equal(w.t, gql.OperationStateFailed, w.ends(operation).State)
				w.succeeds(w.decommission(instance, false))
			}
			w.mend = func() { w.fine(r.promote(id, gql.StageStaged, "")) }
		},
		cure: func(w *ward) { w.mend() },
	},
}
