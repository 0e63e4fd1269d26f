package artifacts

import (
	"context"
	"crypto"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/cmd/appctl/internal/values"
	"github.com/gpuaas/app-platform/sdk/publish"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// keygen returns the command that makes a key pair. The private key is written to a file and never shown.
func keygen(t *command.Tool) *cobra.Command {
	var algorithm string
	cmd := t.Command("keygen NAME",
		"Create a key pair for signing: NAME.key, a secret, and NAME.pub, the public key to add to a source",
		func(_ context.Context, args []string) error {
			private, err := signing.NewKey(algorithm)
			if err != nil {
				return command.Usagef("--algorithm %q: %w", algorithm, err)
			}
			public, err := writeKeys(args[0], private)
			if err != nil {
				return err
			}
			secret, open := args[0]+".key", args[0]+".pub"
			made := map[string]any{
				"privateKey": secret, "publicKey": open, "algorithm": public.Algorithm,
				"fingerprint": public.Fingerprint,
			}
			return t.Show(command.Fields(made, public.Fingerprint, "Private key", secret, "Public key", open,
				"Algorithm", public.Algorithm, "Fingerprint", public.Fingerprint))
		})
	cmd.Flags().StringVar(&algorithm, "algorithm", signing.ECDSA, signing.ECDSA+" or "+signing.Ed25519)
	return cmd
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
	for _, file := range []string{name + ".key", name + ".pub"} {
		if _, err := os.Lstat(file); err == nil {
			return public, command.Usagef("%s exists already and is kept: choose another name", file)
		}
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
	closed := file.Close()
	if err == nil {
		err = closed
	}
	return err
}

// sign returns the command that signs what is in a registry, or a file beside which the signature is written.
func sign(t *command.Tool) *cobra.Command {
	var where registryFlags
	var keyFile, file string
	var classic bool
	cmd := t.Command("sign [REF]", "Sign an artifact in a registry, or a file, with a key",
		func(ctx context.Context, args []string) error {
			if (len(args) == 1) == (file != "") {
				return command.Usagef("give a reference in a registry, or --file")
			}
			private, err := signingKey(t.Env, keyFile)
			if err != nil {
				return err
			}
			if file != "" {
				return signFile(t, file, private, classic)
			}
			registry, err := where.registry(t.Env)
			if err != nil {
				return err
			}
			made, err := registry.Sign(ctx, args[0], private, classic)
			if err != nil {
				return err
			}
			return t.Show(command.Fields(made, made.Ref, "Signed", made.Ref, "Signature", made.At))
		})
	cmd.Long = `A tag is resolved once, and the digest that it names is signed. The signature is pushed as a bundle that
refers to the artifact (an OCI 1.1 referrer), or with --classic under the tag sha256-….sig, as cosign sign does with a
key. A file's signature is written beside it, as FILE.sigstore.json, or with --classic as FILE.sig; upload it beside the
file.`
	flags := cmd.Flags()
	flags.StringVar(&keyFile, "key", "",
		`file with the private key (env APPCTL_SIGNING_KEY, the key itself); "-" reads standard input`)
	flags.StringVar(&file, "file", "", "sign this file, which is not in a registry")
	flags.BoolVar(&classic, "classic", false, "write the older form of signature")
	where.register(cmd)
	return cmd
}

// signingKey returns the private key of a file, or of the environment.
func signingKey(env command.Environment, path string) (crypto.Signer, error) {
	text := []byte(env.Getenv("APPCTL_SIGNING_KEY"))
	if path != "" {
		var err error
		if text, err = values.ReadFile(path, env.Stdin); err != nil {
			return nil, command.Usagef("signing key: %w", err)
		}
	}
	if len(text) == 0 {
		return nil, command.Usagef("no signing key: give --key, or set APPCTL_SIGNING_KEY")
	}
	private, err := signing.ParsePrivate(text)
	if err != nil {
		return nil, command.Usagef("signing key: %w", err)
	}
	return private, nil
}

// signFile writes a file's signature beside it.
func signFile(t *command.Tool, file string, private crypto.Signer, classic bool) error {
	digest, err := publish.FileDigest(file)
	if err != nil {
		return err
	}
	at, made := file+".sigstore.json", signing.Blob
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
	return t.Show(command.Fields(map[string]any{"digest": digest, "at": at}, digest, "Digest", digest, "Signature", at))
}
