package stack

import (
	"context"
	"encoding/json"
	"os"
	"runtime"

	"github.com/gpuaas/app-platform/sdk/publish"
)

// nobody is who runs the images that are built here.
const nobody = "65532:65532"

// PushImage builds an image of one static program and stores it in a repository of the installation's registry, as any
// publisher would. The same program makes the same digest.
func (s *Stack) PushImage(ctx context.Context, repository, program string) (ref, digest string, err error) {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image := publish.Image{Files: []publish.File{{From: program}}, User: nobody, Platform: "linux/" + runtime.GOARCH}
	if digest, err = publish.Build(dir, image); err != nil {
		return "", "", err
	}
	registry, err := s.registry()
	if err != nil {
		return "", "", err
	}
	pushed, err := registry.PushLayout(ctx, dir, s.RegistryAddr()+"/"+repository+":"+digest[7:19])
	if err != nil {
		return "", "", err
	}
	return pushed.Ref, pushed.Digest, nil
}

// pinned is what the manifest calls the one artifact that it pins.
func pinned(document manifestDocument) string {
	var artifacts []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(document["artifacts"], &artifacts) != nil || len(artifacts) == 0 {
		return "controller"
	}
	return artifacts[0].Name
}
