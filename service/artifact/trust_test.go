package artifact_test

import (
	"crypto"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

func TestASourcesPolicySaysWhatBecomesOfItsSignatures(t *testing.T) {
	t.Parallel()
	trusted, stranger := newKey(t), newKey(t)
	for name, test := range map[string]struct {
		policy  lifecycle.SignaturePolicy
		signers []crypto.Signer
		state   lifecycle.SignatureState
		refuses fault.Code // empty when it is stored
		keeps   fault.Code // why in quarantine
	}{
		"required, signed": {lifecycle.SignatureRequired, []crypto.Signer{trusted},
			lifecycle.SignatureVerified, "", ""},
		"required, both": {lifecycle.SignatureRequired, []crypto.Signer{stranger, trusted}, lifecycle.SignatureVerified,
			"", ""},
		"required, unsigned": {lifecycle.SignatureRequired, nil, "", fault.SignatureMissing, ""},
		"required, untrusted": {lifecycle.SignatureRequired, []crypto.Signer{stranger}, "",
			fault.SignatureUntrusted, ""},
		"quarantine, signed": {lifecycle.SignatureQuarantine, []crypto.Signer{trusted}, lifecycle.SignatureVerified, "",
			""},
		"quarantine, unsigned": {lifecycle.SignatureQuarantine, nil, lifecycle.SignatureMissing,
			"", fault.SignatureMissing},
		"quarantine, wrong": {lifecycle.SignatureQuarantine, []crypto.Signer{stranger},
			lifecycle.SignatureUntrusted, "", fault.SignatureUntrusted},
		"optional, unsigned": {lifecycle.SignatureOptional, nil, lifecycle.SignatureMissing, "", ""},
		"optional, wrong": {lifecycle.SignatureOptional, []crypto.Signer{stranger}, lifecycle.SignatureUntrusted, "",
			fault.SignatureUntrusted},
	} {
		for _, classic := range []bool{false, true} {
			if classic && len(test.signers) > 1 {
				continue
			}
			t.Run(name+map[bool]string{false: ", bundle", true: ", classic"}[classic], func(t *testing.T) {
				t.Parallel()
				b := newBench(t, trusted.Public())
				b.policy(test.policy)
				ref, _ := b.push()
				for _, signer := range test.signers {
					b.sign(ref, signer, classic)
				}
				if test.refuses != "" {
					err := b.publish(ref, "k")
					platformtest.Refused(t, err, test.refuses, "input.ref")
					require.NotEmpty(t, fault.From(err).Reasons)
					b.nothing()
					entries := b.Audit()
					require.Equal(t, string(test.refuses), entries[len(entries)-1].Code)
					return
				}
				made := b.published(ref, "k")
				require.Equal(t, test.state, made.Signature)
				require.Equal(t, test.state == lifecycle.SignatureVerified, made.SignerKeyID != nil)
				require.Equal(t, string(test.keeps), made.QuarantineCode)
				require.Equal(t, test.keeps != "", made.QuarantinedAt != nil)
				require.Equal(t, test.keeps != "", made.QuarantineReason != "")
			})
		}
	}
}

func TestASourceThatRequiresSignaturesAndTrustsNoKeyRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.policy(lifecycle.SignatureRequired)
	ref, _ := b.push()
	err := b.publish(ref, "k")
	platformtest.Refused(t, err, fault.SignatureUntrusted, "input.ref")
	require.ErrorContains(t, err, "trusts no key")
	b.nothing()
}

func TestAKeyThatIsRevokedWhileTheArtifactIsReadDoesNotCount(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	b := newBench(t, key.Public())
	ref, _ := b.push()
	b.sign(ref, key, false)
	revoke := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.SQL(`UPDATE signer_key SET revoked_at = now() WHERE revoked_at IS NULL`)
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&revoke)
	err := b.publish(ref, "k")
	platformtest.Refused(t, err, fault.SignatureUntrusted, "input.ref")
	require.ErrorContains(t, err, "is not trusted any more")
	b.nothing()
}

func TestVerifyingLooksAgainAtBytesAndKeys(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	b := newBench(t, key.Public())
	ref, image := b.push()
	b.sign(ref, key, false)
	made := b.published(ref, "k")
	verify := func(code fault.Code, state lifecycle.SignatureState) {
		t.Helper()
		row, err := b.verbs.Verify(b.publisher, made.ID)
		require.NoError(t, err)
		require.Equal(t, string(code), row.QuarantineCode, row.QuarantineReason)
		require.Equal(t, code != "", row.QuarantinedAt != nil)
		require.Equal(t, state, row.Signature)
	}
	verify("", lifecycle.SignatureVerified)
	b.SQL(`UPDATE signer_key SET valid_until = now() - interval '1 second'`)
	b.SignerKey(b.source, newKey(t).Public())
	verify(fault.SignatureUntrusted, lifecycle.SignatureUntrusted)
	b.SQL(`UPDATE signer_key SET valid_until = NULL`)
	verify("", lifecycle.SignatureVerified)

	parsed, err := image.Manifest()
	require.NoError(t, err)
	swapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, parsed.Layers[1].Digest.String()) {
			_, _ = w.Write(make([]byte, parsed.Layers[1].Size))
			return
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&swapped)
	verify(fault.DigestMismatch, lifecycle.SignatureVerified)
	gone := http.HandlerFunc(http.NotFound)
	b.lie.Store(&gone)
	_, err = b.verbs.Verify(b.publisher, made.ID)
	platformtest.Refused(t, err, fault.ArtifactUnavailable, "artifactId")
	require.Equal(t, 1, b.Count("artifact", "quarantine_code = 'DIGEST_MISMATCH'"), "what is not known changes nothing")
	b.lie.Store(nil)
	verify("", lifecycle.SignatureVerified)
	b.SQL(`UPDATE artifact_source SET disabled_at = now()`)
	_, err = b.verbs.Verify(b.publisher, made.ID)
	platformtest.Refused(t, err, fault.SourceUnknown, "artifactId")
	_, err = b.verbs.Verify(b.publisher, ids.New(ids.Artifact))
	platformtest.Refused(t, err, fault.NotFound)
}

func TestAnArtifactFromBeforeThereWereSourcesIsVerifiedInTheOneThatCoversIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := b.published(ref, "k")
	b.SQL(`DELETE FROM artifact_part`)
	b.SQL(`UPDATE artifact SET source_id = NULL, verified_at = NULL, evidence = '{"parts": 3}'`)
	row, err := b.verbs.Verify(b.publisher, made.ID)
	require.NoError(t, err)
	require.Equal(t, b.source.ID, *row.SourceID)
	require.Len(t, b.parts(made.ID), 4)
}

func TestOnlyWhatACheckPutInQuarantineIsLeftByACheck(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	b := newBench(t, key.Public())
	b.policy(lifecycle.SignatureQuarantine)
	ref, _ := b.push()
	made := b.published(ref, "k")
	require.Equal(t, string(fault.SignatureMissing), made.QuarantineCode)
	row, err := b.verbs.Quarantine(b.operator, made.ID, "I do not like it")
	require.NoError(t, err)
	require.Empty(t, row.QuarantineCode)
	require.Equal(t, "I do not like it", row.QuarantineReason)
	again, err := b.verbs.Quarantine(b.operator, made.ID, "still")
	require.NoError(t, err)
	require.Equal(t, row.QuarantineReason, again.QuarantineReason)

	b.sign(ref, key, false)
	row, err = b.verbs.Verify(b.publisher, made.ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.SignatureVerified, row.Signature)
	require.NotNil(t, row.QuarantinedAt, "a person put it there")
	_, err = b.verbs.Release(b.publisher, made.ID, "mine")
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.Release(b.operator, made.ID, "")
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	row, err = b.verbs.Release(b.operator, made.ID, "looked at")
	require.NoError(t, err)
	require.Nil(t, row.QuarantinedAt)
	_, err = b.verbs.Release(b.operator, made.ID, "again")
	platformtest.Refused(t, err, fault.FailedPrecondition, "artifactId")
}

func TestWhoReleasesAnUntrustedArtifactTakesItUponThemselves(t *testing.T) {
	t.Parallel()
	b := newBench(t, newKey(t).Public())
	b.policy(lifecycle.SignatureQuarantine)
	ref, _ := b.push()
	made := b.published(ref, "k")
	platformtest.Refused(t, b.promote(b.operator, made.ID, lifecycle.StageStaged), fault.ArtifactQuarantined,
		"input.artifactId")
	_, err := b.verbs.Release(b.operator, made.ID, "an old image that nobody can sign")
	require.NoError(t, err)
	entries := b.Audit()
	require.Contains(t, string(entries[len(entries)-1].After), `"untrusted": true`)
	row, err := b.verbs.Verify(b.publisher, made.ID)
	require.NoError(t, err)
	require.Nil(t, row.QuarantinedAt, "the release was for this very finding")
	require.NoError(t, b.promote(b.operator, made.ID, lifecycle.StageStaged))
	b.sign(ref, newKey(t), false)
	row, err = b.verbs.Verify(b.publisher, made.ID)
	require.NoError(t, err)
	require.Equal(t, string(fault.SignatureUntrusted), row.QuarantineCode, "and for no other")
}
