package stack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/rig/stack/edition"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// tryTimeout bounds a launch in the lab with everything up to its teardown.
const tryTimeout = 8 * time.Minute

// override is why the reference apps' versions and artifacts take their steps without smokes of a runner's, launches
// and time.
const override = "a local installation: its own operator publishes what this repository was built with"

// publishAll publishes the apps of tenants beside each other, since smoke launches wait more than they work. The
// platform's own apps follow: they use artifacts of the others.
func (s *Stack) publishAll(ctx context.Context) error {
	each, within := errgroup.WithContext(ctx)
	for _, app := range s.config.Apps {
		if app.System == nil {
			each.Go(func() error { return s.publish(within, app) })
		}
	}
	if err := each.Wait(); err != nil {
		return err
	}
	for _, app := range s.config.Apps {
		if app.System == nil {
			continue
		}
		if err := s.publish(ctx, app); err != nil {
			return err
		}
		if err := s.operate(ctx, app); err != nil {
			return fmt.Errorf("run %s for the platform: %w", app.Slug, err)
		}
	}
	return nil
}

// publish takes an app the way every publisher takes: the controller's own bytes are pushed and
// pinned by digest, the manifest is linted, smoke-launched, and promoted stage by stage. An app
// whose active manifest pins the same bytes is left as it is.
func (s *Stack) publish(ctx context.Context, app App) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("publish %s: %w", app.Slug, err)
		}
	}()
	ref, digest, err := s.push(ctx, app)
	if err != nil {
		return err
	}
	document, err := s.describeApp(ctx, app)
	if err != nil {
		return err
	}
	current, err := s.declare(ctx, app, document)
	if err != nil {
		return err
	}
	if current.Active[digest] {
		return s.entitle(ctx, app, s.home(app))
	}
	version, err := current.Next(document, digest)
	if err != nil {
		return err
	}
	s.say("publishing %s %s: signature, lint, smoke launch, promotion", app.Slug, version)
	pins, called := []edition.Pin{}, cmp.Or(app.Image, app.Controller)
	for i, name := range document.Names() {
		pin := edition.Pin{Name: name, MediaType: edition.MediaType, Ref: ref, Digest: digest}
		if i > 0 {
			if pin, err = s.pushFiles(ctx, app, name); err != nil {
				return fmt.Errorf("push the artifact %s: %w", name, err)
			}
			called = app.Slug + "-" + name
		}
		if err := s.sign(ctx, pin.Ref); err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		if err := s.publishArtifact(ctx, called, pin); err != nil {
			return err
		}
		pins = append(pins, pin)
	}
	return s.publishManifest(ctx, app, document, version, pins)
}

// push stores what the app pins in the registry: its image, or its controller's program. Without times in it, the same
// bytes get the same digest.
func (s *Stack) push(ctx context.Context, app App) (ref, digest string, err error) {
	if app.Image != "" {
		return s.PushImage(ctx, "apps/"+app.Image, s.program(app.Image))
	}
	program, err := os.ReadFile(s.controller(app))
	if err != nil {
		return "", "", err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	header := &tar.Header{Name: app.Controller, Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}
	if err := writer.WriteHeader(header); err != nil {
		return "", "", err
	}
	if _, err := writer.Write(program); err != nil {
		return "", "", err
	}
	if err := writer.Close(); err != nil {
		return "", "", err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		static.NewLayer(archive.Bytes(), types.OCIUncompressedLayer))
	if err != nil {
		return "", "", err
	}
	return s.write(ctx, app, image)
}

func (s *Stack) write(ctx context.Context, app App, image v1.Image) (ref, digest string, err error) {
	hash, err := image.Digest()
	if err != nil {
		return "", "", err
	}
	repository := s.RegistryAddr() + "/apps/" + app.Slug
	target, err := name.NewDigest(repository+"@"+hash.String(), name.Insecure)
	if err != nil {
		return "", "", err
	}
	return repository + "@" + hash.String(), hash.String(),
		remote.Write(target, image, remote.WithContext(ctx), remote.WithAuth(s.RegistryPush()))
}

// describeApp reads the manifest that the app's program prints, or its controller's, as the app's own.
func (s *Stack) describeApp(ctx context.Context, app App) (document edition.Document, err error) {
	program := s.controller(app)
	if app.Prints {
		program = s.program(app.Image)
	}
	printed, err := output(ctx, program, "--print-manifest")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(printed, &document); err != nil {
		return nil, fmt.Errorf("the manifest of %s: %w", app.Slug, err)
	}
	app.describe(document)
	return document, nil
}

// declare makes sure of the app and its adapter, and says what is published.
func (s *Stack) declare(ctx context.Context, app App, document edition.Document) (edition.Published, error) {
	out := edition.Published{Active: make(map[string]bool)}
	_, err := gql.CreateApp(ctx, s.Operator, gql.CreateAppInput{
		Slug: app.Slug, DisplayName: document.Text("displayName"), Summary: document.Text("summary"),
		PermissionFamily: app.Family, System: app.System != nil, IdempotencyKey: "seed-app-" + app.Slug,
	})
	if err != nil {
		return out, err
	}
	_, err = gql.RegisterAdapter(ctx, s.Operator, gql.RegisterAdapterInput{Name: document.Text("adapter"),
		Url: s.adapters[app.Controller], ServiceAccountId: s.accountOf(app)})
	if err != nil {
		return out, err
	}
	found, err := gql.GetApp(ctx, s.Operator, app.Slug)
	if err != nil {
		return out, err
	}
	for _, edge := range found.App.Manifests.Edges {
		out.Versions = append(out.Versions, edge.Node.Version)
	}
	if active := found.App.ActiveManifest; active != nil {
		for _, artifact := range active.Artifacts {
			out.Active[artifact.Digest] = true
		}
	}
	return out, nil
}

func (s *Stack) publishArtifact(ctx context.Context, name string, pin edition.Pin) error {
	made, err := gql.PublishArtifact(ctx, s.Operator, gql.PublishArtifactInput{Name: name, MediaType: pin.MediaType,
		Ref: pin.Ref, IdempotencyKey: "seed-artifact-" + pin.Digest[7:39]})
	if err != nil {
		return err
	}
	stage := made.PublishArtifact.Stage
	for _, to := range []gql.Stage{gql.StageStaged, gql.StageCanary, gql.StageActive} {
		if edition.Reached(stage, to) {
			continue
		}
		step := gql.PromoteArtifactInput{ArtifactId: made.PublishArtifact.Id, To: to,
			Reason: "reference app of this repository"}
		if to == gql.StageActive {
			step.Override = override // no runner has smoked what was built a moment ago
		}
		if _, err := gql.PromoteArtifact(ctx, s.Operator, step); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) publishManifest(ctx context.Context, app App, document edition.Document, version string,
	pins []edition.Pin) error {
	encoded, err := document.Publish(version, pins)
	if err != nil {
		return err
	}
	made, err := gql.PublishManifest(ctx, s.Operator, gql.PublishManifestInput{
		Document: encoded, IdempotencyKey: "seed-manifest-" + app.Slug + "-" + version,
	})
	if err != nil {
		return err
	}
	manifest := made.PublishManifest
	if err := s.bring(ctx, app, manifest.Id, document); err != nil {
		return err
	}
	for _, to := range []gql.Stage{gql.StageStaged, gql.StageCanary, gql.StageActive} {
		if edition.Reached(manifest.Stage, to) {
			continue
		}
		step := gql.PromoteManifestInput{ManifestId: manifest.Id, To: to, Reason: "reference app of this repository"}
		if to != gql.StageStaged {
			step.Override = override
		}
		if to == gql.StageStaged {
			if step.SmokeInstanceId, err = s.smoke(ctx, app, version); err != nil {
				return fmt.Errorf("smoke launch: %w", err)
			}
		}
		if _, err := gql.PromoteManifest(ctx, s.Operator, step); err != nil {
			return err
		}
	}
	return s.entitle(ctx, app, s.home(app))
}

func (s *Stack) entitle(ctx context.Context, app App, project string) error {
	_, err := gql.GrantEntitlement(ctx, s.Operator, project, app.Slug, nil, nil, "")
	return err
}
