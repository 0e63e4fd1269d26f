package token_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

var kinds = map[token.Kind]ids.Kind{
	token.Session: ids.Session, token.Key: ids.ServiceKey, token.Node: ids.NodeCredential,
	token.Enrolment: ids.NodeEnrolment, token.Login: ids.LoginLink, token.Attempt: ids.LoginAttempt,
	token.Invite: ids.Invitation, token.Bootstrap: ids.LoginLink,
}

func TestAMintedSecretIsReadBackAsWhatItIs(t *testing.T) {
	t.Parallel()
	for kind, row := range kinds {
		text, minted := token.Mint(kind)
		require.True(t, strings.HasPrefix(text, "gpu_"+string(kind)+"_"), text)
		require.Equal(t, row, minted.ID.Kind())
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, sum[:], minted.Hash)
		read, err := token.ParseSecret(text)
		require.NoError(t, err)
		require.Equal(t, minted, read)
		again, _ := token.Mint(kind)
		require.NotEqual(t, text, again)
	}
}

func TestEveryMistypedCharacterIsSeenBeforeTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	text, _ := token.Mint(token.Key)
	for i := range text {
		wrong := []byte(text)
		if wrong[i]++; wrong[i] == '_' {
			wrong[i]++
		}
		_, err := token.ParseSecret(string(wrong))
		require.True(t, fault.Is(err, fault.Unauthenticated), "%d: %s", i, wrong)
	}
	for _, wrong := range []string{text[1:], text[:len(text)-1], text + "0", " " + text, strings.ToUpper(text),
		strings.Replace(text, "_sa_", "_ses_", 1)} {
		_, err := token.ParseSecret(wrong)
		require.True(t, fault.Is(err, fault.Unauthenticated), wrong)
	}
	require.NotContains(t, fault.From(func() error { _, err := token.ParseSecret(text + "0"); return err }()).Error(),
		text)
}

func FuzzParseSecret(f *testing.F) {
	for kind := range kinds {
		text, _ := token.Mint(kind)
		f.Add(text)
	}
	f.Add("gpu_ses__")
	f.Add("gpu_\xff_0_" + strings.Repeat("z", 49))
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := token.ParseSecret(text)
		if err != nil {
			require.True(t, fault.Is(err, fault.Unauthenticated))
			return
		}
		require.True(t, secret.ID.Valid())
		require.Equal(t, kinds[secret.Kind], secret.ID.Kind())
		require.True(t, strings.HasPrefix(text, "gpu_"+string(secret.Kind)+"_"+secret.ID.Suffix()+"_"))
	})
}
