package sshca_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/authz/token"
)

func lineOf(t *testing.T, public any) string {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	return string(ssh.MarshalAuthorizedKey(key))
}

func TestKeysOfTheAuthoritiesAreKeptApartAndRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authorities, err := sshca.Load(dir)
	require.NoError(t, err)
	again, err := sshca.Load(dir)
	require.NoError(t, err)
	require.Equal(t, authorities.People(), again.People(), "the keys are kept")
	require.NotEqual(t, authorities.People(), authorities.Hosts())
	for _, of := range []string{sshca.PeopleDir, sshca.HostsDir} {
		files, err := filepath.Glob(filepath.Join(dir, of, "*.pem"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := os.Stat(files[0])
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	_, err = token.AddKey(filepath.Join(dir, sshca.PeopleDir))
	require.NoError(t, err)
	before := authorities.People()
	require.NoError(t, authorities.Reload())
	require.Len(t, authorities.People(), 2)
	require.Contains(t, authorities.People(), before[0])
	require.Len(t, authorities.Hosts(), 1)
}

func TestACertificateSaysWhatItIsGoodFor(t *testing.T) {
	t.Parallel()
	authorities, err := sshca.New()
	require.NoError(t, err)
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := sshca.ParseKey(lineOf(t, public))
	require.NoError(t, err)
	now := time.Unix(1_800_000_000, 0)
	what := sshca.Certificate{Key: key, KeyID: "usr_a", Principals: []string{"usr_a@ins_a"}, Now: now,
		Until: now.Add(time.Minute)}
	line, serial, err := authorities.SignPerson(what)
	require.NoError(t, err)
	read, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	require.NoError(t, err)
	certificate := read.(*ssh.Certificate)
	require.Equal(t, serial, certificate.Serial)
	require.Equal(t, map[string]string{"permit-pty": "", "permit-port-forwarding": ""}, certificate.Extensions)
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	require.NoError(t, checker.CheckCert("usr_a@ins_a", certificate))
	require.Error(t, checker.CheckCert("root", certificate))
	checker.Clock = func() time.Time { return now.Add(time.Minute) }
	require.ErrorContains(t, checker.CheckCert("usr_a@ins_a", certificate), "expired")
	what.Principals = nil
	_, _, err = authorities.SignPerson(what)
	require.ErrorContains(t, err, "needs a principal", "one without would be good for everybody")
	_, err = sshca.ParseKey(line)
	require.ErrorContains(t, err, "is a certificate")
}

func TestKeysThatAreTooWeakAreRefused(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = sshca.ParseKey(lineOf(t, curve.Public()))
	require.NoError(t, err)
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, err = sshca.ParseKey(lineOf(t, strong.Public()))
	require.NoError(t, err)
	weak := "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ" // cut off: no key
	_, err = sshca.ParseKey(weak)
	require.ErrorContains(t, err, "one line as ssh-keygen writes it")
}
