package smoke

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// cleanup bounds what is tidied up after a smoke.
const cleanup = time.Minute

// start loads the image into the engine, starts it once without a network, and waits until its command has ended well
// or has stayed up. What was loaded and started is removed whatever happens.
func (r *Report) start(ctx context.Context, image v1.Image, options Options) {
	e := engine{words: options.Engine, name: "smoke-" + strings.ToLower(rand.Text()[:10])}
	e.tag = "localhost/" + e.name + ":smoke"
	defer e.tidy(ctx)
	command, err := commandOf(image, options.Command)
	if err == nil {
		r.Command = command
		err = e.load(ctx, image)
	}
	var begun *container
	if err == nil {
		begun, err = e.begin(ctx, options)
	}
	if err != nil {
		r.note("started", err, "")
		return
	}
	detail, err := begun.answer(ctx, options.Up)
	if unstarted(err) {
		r.note("started", err, "")
		return
	}
	r.note("started", nil, strings.Join(options.Engine, " "))
	r.note("answered", err, detail)
}

// unstarted reports whether the engine ended without having started the command: podman and docker say so by 125 to
// 127.
func unstarted(err error) bool {
	var ended *exec.ExitError
	return errors.As(err, &ended) && ended.ExitCode() >= 125 && ended.ExitCode() <= 127
}

// commandOf returns what is started: the image's entrypoint with its own arguments, or with the given ones.
func commandOf(image v1.Image, given []string) ([]string, error) {
	if image == nil {
		return nil, fmt.Errorf("it has no image for linux/%s: run its smoke on a machine with one", runtime.GOARCH)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	words := config.Config.Cmd
	if len(given) > 0 {
		words = given
	}
	command := append(append([]string{}, config.Config.Entrypoint...), words...)
	if len(command) == 0 {
		return nil, errors.New("the image declares no command: give one after --")
	}
	return command, nil
}

// engine is a container engine with the one image and container of a smoke.
type engine struct {
	words     []string
	tag, name string
}

// load hands the engine the image's bytes, so that it runs what was checked and asks no registry.
func (e *engine) load(ctx context.Context, image v1.Image) error {
	dir, err := os.MkdirTemp("", "smoke-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tag, err := name.NewTag(e.tag)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "image.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return err
	}
	return e.run(ctx, "load", "--input", file)
}

// run runs a command of the engine; its error ends with what the engine wrote.
func (e *engine) run(ctx context.Context, args ...string) error {
	output, err := e.command(ctx, args...).CombinedOutput()
	return said(err, output)
}

func (e *engine) command(ctx context.Context, args ...string) *exec.Cmd {
	words := append(append([]string{}, e.words[1:]...), args...)
	return exec.CommandContext(ctx, e.words[0], words...) // #nosec G204 -- the engine that the caller names
}

func said(err error, output []byte) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
}

// tidy removes the container and the image, also when the smoke was interrupted.
func (e *engine) tidy(ctx context.Context) {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	_ = e.run(rest, "rm", "--force", e.name)
	_ = e.run(rest, "rmi", "--force", e.tag)
}

// container is a command that was started.
type container struct {
	ended  chan error
	output *bytes.Buffer
}

// begin starts the container in the foreground, as its exit code is the answer.
func (e *engine) begin(ctx context.Context, options Options) (*container, error) {
	args := append([]string{"run", "--name", e.name, "--network=none"}, options.Flags...)
	args = append(append(args, e.tag), options.Command...)
	cmd := e.command(ctx, args...)
	out := &container{ended: make(chan error, 1), output: new(bytes.Buffer)}
	cmd.Stdout, cmd.Stderr = out.output, out.output
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { out.ended <- cmd.Wait() }()
	return out, nil
}

// answer waits until the command has ended, or has stayed up for long enough, and returns which.
func (c *container) answer(ctx context.Context, up time.Duration) (string, error) {
	stays := time.NewTimer(up)
	defer stays.Stop()
	select {
	case err := <-c.ended:
		return "ended with 0: " + clip(c.output.String()), said(err, c.output.Bytes())
	case <-stays.C:
		return fmt.Sprintf("stayed up for %s", up), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
