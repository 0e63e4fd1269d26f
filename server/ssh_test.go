package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// someKey is a public key whose private half no one has kept.
const someKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEPWAUKk1hrNN5Oz0CDjmGkN1DjJ/e8KRMSRxBrbVi2H"

// playLogin plays the SSH server of a member: it prints its spec and the certificate of its host, and echoes.
func playLogin(open tunnel.Open, stream *tunnel.Stream) error {
	if err := stream.Granted(); err != nil {
		return err
	}
	certificate, err := tunnel.OfferHostKey(stream, someKey)
	if err != nil {
		return err
	}
	if err := tunnel.WriteFrame(stream, tunnel.Output, open.Spec); err != nil {
		return err
	}
	if err := tunnel.WriteFrame(stream, tunnel.Output, []byte(certificate)); err != nil {
		return err
	}
	_, err = io.Copy(stream, stream)
	return err
}

// issued is the answer of issueSshCertificate.
type issued struct {
	Certificate                            string
	Principals, HostAuthorities, HostNames []string
	ExpiresAt                              time.Time
}

// issue requests a certificate; code is that of a refusal.
func (r *reachable) issue(credential string, input map[string]any) (got issued, code, message string) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{"variables": map[string]any{"i": input}, "query": `
		mutation($i: IssueSshCertificateInput!) { issueSshCertificate(input: $i) {
			certificate principals expiresAt hostAuthorities hostNames } }`})
	require.NoError(r.t, err)
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.far.url+"/graphql",
		bytes.NewReader(body))
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data   struct{ IssueSSHCertificate issued }
		Errors []struct {
			Message    string
			Extensions struct {
				Code    string
				Reasons []struct{ Path, Message string }
			}
		}
	}
	require.NoError(r.t, json.NewDecoder(response.Body).Decode(&answer))
	if len(answer.Errors) > 0 {
		first := answer.Errors[0]
		return got, first.Extensions.Code, fmt.Sprint(first.Message, first.Extensions.Reasons)
	}
	return answer.Data.IssueSSHCertificate, "", ""
}

// parsed reads a certificate.
func parsed(t *testing.T, line string) *ssh.Certificate {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	require.NoError(t, err)
	require.IsType(t, &ssh.Certificate{}, key)
	return key.(*ssh.Certificate)
}

// loginAt is the address of the SSH server of a member.
func (r *reachable) loginAt(member ids.ID, reason string) string {
	return r.far.url + tunnel.ConnectPath + "?" + url.Values{"member": {string(member)}, "reason": {reason}}.Encode()
}

// logsIn has certificates issued and refused, and connects to the SSH server of the member.
func (r *reachable) logsIn(session string, person *db.User) {
	t, admin := r.t, r.Session(person)
	at := string(r.instance.ID)
	var member ids.ID
	require.NoError(t, r.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`, at).Scan(&member))
	r.noCertificate(session, admin, member)

	got, code, message := r.issue(admin,
		map[string]any{"instanceId": at, "publicKey": someKey + " a comment", "reason": "to look"})
	require.Empty(t, code, message)
	certificate := parsed(t, got.Certificate)
	require.EqualValues(t, ssh.UserCert, certificate.CertType)
	require.Equal(t, []string{string(person.ID) + "@" + at}, certificate.ValidPrincipals)
	require.Equal(t, got.Principals, certificate.ValidPrincipals)
	require.Equal(t, got.ExpiresAt.Unix(), int64(certificate.ValidBefore))
	require.WithinDuration(t, time.Now().Add(5*time.Minute), got.ExpiresAt, time.Minute)
	require.Equal(t, 1, r.Count("audit_entry", `action = 'issueSshCertificate' AND allowed AND reason = 'to look'
		AND after ->> 'serial' = $1 AND after::text NOT LIKE '%AAAA%'`, fmt.Sprint(certificate.Serial)))

	conn, err := tunnel.Dial(t.Context(), r.loginAt(member, "to look"), admin, nil)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, spec, err := tunnel.ReadFrame(conn)
	require.NoError(t, err)
	var wanted tunnel.SSH
	require.NoError(t, json.Unmarshal(spec, &wanted))
	require.Equal(t, certificate.ValidPrincipals[0], wanted.Principal, "the agent lets in the caller at this instance")
	signedBy := func(by ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(by))) }
	require.Contains(t, wanted.Authorities, signedBy(certificate.SignatureKey))
	require.NotContains(t, got.HostAuthorities, signedBy(certificate.SignatureKey), "there are two authorities")
	_, line, err := tunnel.ReadFrame(conn)
	require.NoError(t, err)
	host := parsed(t, string(line))
	require.EqualValues(t, ssh.HostCert, host.CertType)
	require.Equal(t, []string{string(member), "worker.0." + at}, host.ValidPrincipals)
	require.Contains(t, got.HostAuthorities, signedBy(host.SignatureKey))
	require.Equal(t, 1, r.Count("audit_entry",
		`action = 'sshMember' AND allowed AND object_id = $1 AND reason = 'to look'`, member))

	ofEndpoint, code, message := r.issue(session,
		map[string]any{"instanceId": at, "publicKey": someKey, "endpoint": "login"})
	require.Empty(t, code, message)
	require.Len(t, ofEndpoint.Principals, 2)
	require.Equal(t, "login."+at, ofEndpoint.Principals[1])
	require.False(t, slices.Contains(ofEndpoint.Principals, got.Principals[0]), "neither is good for the other")

	r.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, person.ID)
	began := time.Now()
	_, _ = io.ReadAll(conn)
	require.Less(t, time.Since(began), 5*time.Second, "the connection ends with the right")
	_, code, _ = r.issue(admin, map[string]any{"instanceId": at, "publicKey": someKey, "reason": "to look"})
	require.NotEmpty(t, code)
}

// noCertificate sees who is refused, and for what.
func (r *reachable) noCertificate(session, admin string, member ids.ID) {
	t, at := r.t, string(r.instance.ID)
	other := r.Tenant()
	stranger := r.Session(r.User(other, platformtest.Across(authz.TenantAdmin, other)))
	r.Policy(r.project, `{"access": {"deny": ["EXEC", "ENDPOINTS"]}}`)
	for name, refused := range map[string]struct {
		who, says string
		input     map[string]any
		want      fault.Code
	}{
		"a stranger":             {stranger, "", map[string]any{"reason": "to look"}, fault.NotFound},
		"who lacks the key":      {session, "apps.member.exec", map[string]any{"reason": "to look"}, fault.Forbidden},
		"by policy":              {admin, "EXEC", map[string]any{"reason": "to look"}, fault.PolicyDenied},
		"by policy, an endpoint": {admin, "ENDPOINTS", map[string]any{"endpoint": "login"}, fault.PolicyDenied},
		"without a reason":       {admin, "input.reason", map[string]any{}, fault.InvalidArgument},
		"of another protocol":    {admin, "uses tcp", map[string]any{"endpoint": "raw"}, fault.FailedPrecondition},
		"of no endpoint":         {admin, "nothing", map[string]any{"endpoint": "nothing"}, fault.NotFound},
		"no key": {admin, "ssh-keygen writes it", map[string]any{"publicKey": "ssh-ed25519 x"},
			fault.InvalidArgument},
		"a key with options": {admin, "input.publicKey", map[string]any{"publicKey": "no-pty " + someKey},
			fault.InvalidArgument},
		"two keys": {admin, "one line", map[string]any{"publicKey": someKey + "\n" + someKey}, fault.InvalidArgument},
	} {
		input := map[string]any{"instanceId": at, "publicKey": someKey}
		for field, value := range refused.input {
			input[field] = value
		}
		_, code, message := r.issue(refused.who, input)
		require.Equal(t, string(refused.want), code, "%s: %s", name, message)
		require.Contains(t, message, refused.says, name)
	}
	for name, refused := range map[string]struct {
		who    string
		member ids.ID
		reason string
		want   fault.Code
	}{
		"a stranger":        {stranger, member, "to look", fault.NotFound},
		"who lacks the key": {session, member, "to look", fault.Forbidden},
		"by policy":         {admin, member, "to look", fault.PolicyDenied},
		"without a reason":  {admin, member, "", fault.InvalidArgument},
		"no member":         {admin, ids.New(ids.Member), "to look", fault.NotFound},
	} {
		_, err := tunnel.Dial(t.Context(), r.loginAt(refused.member, refused.reason), refused.who, nil)
		var why *tunnel.Refusal
		require.ErrorAs(t, err, &why, name)
		require.Equal(t, string(refused.want), why.Code, "%s: %s", name, why.Message)
	}
	r.Policy(r.project, `{}`)
	require.Zero(t, r.Count("audit_entry", "action IN ('issueSshCertificate', 'sshMember') AND allowed"),
		"nothing was issued")
}
