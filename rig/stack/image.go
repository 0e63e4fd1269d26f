package stack

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gpuaas/app-platform/rig/stack/edition"
	"github.com/gpuaas/app-platform/sdk/publish"
)

// nobody is the user and group that the images built here run as.
const nobody = "65532:65532"

// fileType is the artifact type of further artifacts.
const fileType = "application/vnd.gpuaas.files.v1"

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

// pushFiles stores another artifact that the app's manifest pins: the files that its program writes.
func (s *Stack) pushFiles(ctx context.Context, app App, name string) (pin edition.Pin, err error) {
	dir, err := os.MkdirTemp("", "artifact")
	if err != nil {
		return pin, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := output(ctx, s.program(app.Image), "--artifact", name, "--into", dir); err != nil {
		return pin, err
	}
	registry, err := s.registry()
	if err != nil {
		return pin, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return pin, err
	}
	pushed, err := registry.PushFiles(ctx, files, fileType, s.RegistryAddr()+"/apps/"+app.Slug+"-"+name+":latest")
	if err != nil {
		return pin, err
	}
	return edition.Pin{Name: name, MediaType: edition.MediaType, Ref: pushed.Ref, Digest: pushed.Digest}, nil
}
