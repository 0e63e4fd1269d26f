package cli

import (
	"context"
	"crypto"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/render"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

func (t *tool) artifactBuild() *cobra.Command {
	var image publish.Image
	var files []string
	build := t.command("build DIR", "Build a small image from programs that need nothing else into an OCI image layout", cobra.ExactArgs(1),
		func(_ context.Context, args []string) error {
			for _, file := range files {
				from, to, _ := strings.Cut(file, ":")
				image.Files = append(image.Files, publish.File{From: from, To: to})
			}
			digest, err := publish.Build(args[0], image)
			if err != nil {
				return err
			}
			made := map[string]any{"layout": args[0], "digest": digest, "platform": image.Platform}
			return t.show(view{JSON: made, IDs: []string{digest}, Page: func(p *render.Page) {
				p.Fields("Layout", args[0], "Digest", digest, "Platform", image.Platform)
			}})
		})
	build.Long = `The same files give the same digest, wherever and whenever it is built. Built again for another platform, the layout holds both.`
	build.Example = `  appctl artifact build out --file bin/server --env PORT=8080 --user 65532:65532
  appctl artifact push out registry.example.com/team/server:1.2.0`
	set := build.Flags()
	set.StringArrayVar(&files, "file", nil, "file that goes in, PATH or PATH:PATH-IN-IMAGE; the first is run; repeat for more")
	set.StringArrayVar(&image.Entrypoint, "entrypoint", nil, "what is run, a word each; the first file if not given")
	set.StringArrayVar(&image.Env, "env", nil, "variable, NAME=value; repeat for more")
	set.StringVar(&image.User, "user", "", "who runs it, such as 65532:65532")
	set.StringVar(&image.Platform, "platform", "linux/"+runtime.GOARCH, "what the programs run on")
	build.Flags().Lookup("platform").DefValue = "this machine's architecture on linux"
	_ = build.MarkFlagRequired("file")
	return build
}

// registryFlags say how a registry is reached. Its password comes from a file or the environment, never from the command line.
type registryFlags struct {
	user, passwordFile string
	plain              bool
}

func (f *registryFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.user, "registry-user", "", "user at the registry (env APPCTL_REGISTRY_USER); what the container tools are logged in as if not given")
	set.StringVar(&f.passwordFile, "registry-password-file", "", `file with the user's password (env APPCTL_REGISTRY_PASSWORD); "-" reads standard input`)
	set.BoolVar(&f.plain, "plain-http", false, "ask the registry without TLS")
}

func (t *tool) registry(f registryFlags) (publish.Registry, error) {
	out := publish.Registry{User: firstOf(f.user, t.Env.Getenv("APPCTL_REGISTRY_USER")), Password: t.Env.Getenv("APPCTL_REGISTRY_PASSWORD"), PlainHTTP: f.plain}
	if f.passwordFile != "" {
		text, err := values.ReadFile(f.passwordFile, t.Env.Stdin)
		if err != nil {
			return out, usagef("registry password: %w", err)
		}
		out.Password = strings.TrimRight(string(text), "\r\n")
	}
	if out.User != "" && out.Password == "" {
		return out, usagef("the registry's user needs a password: --registry-password-file or APPCTL_REGISTRY_PASSWORD")
	}
	return out, nil
}

func (t *tool) artifactPush() *cobra.Command {
	var where registryFlags
	var files []string
	var artifactType string
	push := t.command("push [LAYOUT] HOST/REPOSITORY:TAG", "Push an image layout, or files as an OCI artifact, to a registry", cobra.RangeArgs(1, 2),
		func(ctx context.Context, args []string) error {
			if (len(args) == 2) == (len(files) > 0) {
				return usagef("give the folder of an image layout, or --file for each file of an artifact")
			}
			registry, err := t.registry(where)
			if err != nil {
				return err
			}
			var made *publish.Pushed
			if len(args) == 2 {
				made, err = registry.PushLayout(ctx, args[0], args[1])
			} else {
				made, err = registry.PushFiles(ctx, files, artifactType, args[0])
			}
			if err != nil {
				return err
			}
			return t.show(view{JSON: made, IDs: []string{made.Ref}, Page: func(p *render.Page) {
				p.Fields("Ref", made.Ref, "Digest", made.Digest, "Media type", made.MediaType, "Platforms", strings.Join(made.Platforms, ", "))
			}})
		})
	push.Example = `  appctl artifact push out registry.example.com/team/server:1.2.0 --registry-user ci --registry-password-file /run/secrets/registry
  appctl artifact push --file model.safetensors --artifact-type application/vnd.example.model.v1 registry.example.com/team/model:3`
	push.Flags().StringArrayVar(&files, "file", nil, "file of an artifact; repeat for more")
	push.Flags().StringVar(&artifactType, "artifact-type", "application/octet-stream", "what the files are together")
	where.register(push)
	return push
}

func (t *tool) artifactKeygen() *cobra.Command {
	var algorithm string
	keygen := t.command("keygen NAME", "Make a key pair for signing: NAME.key, a secret, and NAME.pub, which a source is told to trust", cobra.ExactArgs(1),
		func(_ context.Context, args []string) error {
			private, err := signing.NewKey(algorithm)
			if err != nil {
				return usageError(fmt.Errorf("--algorithm %q: %w", algorithm, err))
			}
			public, err := writeKeys(args[0], private)
			if err != nil {
				return err
			}
			made := map[string]any{"privateKey": args[0] + ".key", "publicKey": args[0] + ".pub", "algorithm": public.Algorithm, "fingerprint": public.Fingerprint}
			return t.show(view{JSON: made, IDs: []string{public.Fingerprint}, Page: func(p *render.Page) {
				p.Fields("Private key", args[0]+".key", "Public key", args[0]+".pub", "Algorithm", public.Algorithm, "Fingerprint", public.Fingerprint)
			}})
		})
	keygen.Flags().StringVar(&algorithm, "algorithm", signing.ECDSA, signing.ECDSA+" or "+signing.Ed25519)
	return keygen
}

// writeKeys writes a key pair beside each other; a key that is there already is never overwritten.
func writeKeys(name string, private crypto.Signer) (signing.Public, error) {
	public, err := signing.Describe(private.Public())
	if err != nil {
		return public, err
	}
	secret, err := signing.EncodePrivate(private)
	if err != nil {
		return public, err
	}
	open, err := signing.EncodePublic(private.Public())
	if err != nil {
		return public, err
	}
	if err := writeNew(name+".key", secret, 0o600); err != nil {
		return public, err
	}
	return public, writeNew(name+".pub", open, 0o644)
}

// writeNew writes a file that is not there yet.
func writeNew(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func (t *tool) artifactSign() *cobra.Command {
	var where registryFlags
	var keyFile, file string
	var classic bool
	sign := t.command("sign [REF]", "Sign what lies in a registry, or a file, with a key", cobra.MaximumNArgs(1),
		func(ctx context.Context, args []string) error {
			if (len(args) == 1) == (file != "") {
				return usagef("give a reference in a registry, or --file")
			}
			private, err := t.signingKey(keyFile)
			if err != nil {
				return err
			}
			if file != "" {
				return t.signFile(file, private, classic)
			}
			registry, err := t.registry(where)
			if err != nil {
				return err
			}
			made, err := registry.Sign(ctx, args[0], private, classic)
			if err != nil {
				return err
			}
			return t.show(view{JSON: made, IDs: []string{made.Ref}, Page: func(p *render.Page) {
				p.Fields("Signed", made.Ref, "Signature", made.At)
			}})
		})
	sign.Long = `A tag is looked up once; the digest found there is signed. What is pushed is a bundle that refers to it (an OCI 1.1 referrer), or with
--classic a signature under the tag sha256-….sig: what cosign sign makes with a key. A file's signature is written beside it, as FILE.sigstore.json, or
with --classic as FILE.sig; put it where the file goes.`
	sign.Flags().StringVar(&keyFile, "key", "", `file with the private key (env APPCTL_SIGNING_KEY, the key itself); "-" reads standard input`)
	sign.Flags().StringVar(&file, "file", "", "a file that is not in a registry")
	sign.Flags().BoolVar(&classic, "classic", false, "the older form")
	where.register(sign)
	return sign
}

// signingKey is the private key of a file, or of the environment.
func (t *tool) signingKey(path string) (crypto.Signer, error) {
	text := []byte(t.Env.Getenv("APPCTL_SIGNING_KEY"))
	if path != "" {
		var err error
		if text, err = values.ReadFile(path, t.Env.Stdin); err != nil {
			return nil, usagef("signing key: %w", err)
		}
	}
	if len(text) == 0 {
		return nil, usagef("no signing key: give --key, or set APPCTL_SIGNING_KEY")
	}
	private, err := signing.ParsePrivate(text)
	if err != nil {
		return nil, usagef("signing key: %w", err)
	}
	return private, nil
}

func (t *tool) signFile(file string, private crypto.Signer, classic bool) error {
	digest, err := publish.FileDigest(file)
	if err != nil {
		return err
	}
	at := file + ".sigstore.json"
	made := signing.Blob
	if classic {
		at, made = file+".sig", signing.DetachedBlob
	}
	signature, err := made(digest, private)
	if err != nil {
		return err
	}
	if err := os.WriteFile(at, signature, 0o644); err != nil {
		return err
	}
	return t.show(view{JSON: map[string]any{"digest": digest, "at": at}, IDs: []string{digest}, Page: func(p *render.Page) {
		p.Fields("Digest", digest, "Signature", at)
	}})
}
