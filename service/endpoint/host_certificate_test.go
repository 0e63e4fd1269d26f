package endpoint_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/endpoint"
)

// hostKey is a public key whose private half no one has kept.
const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEPWAUKk1hrNN5Oz0CDjmGkN1DjJ/e8KRMSRxBrbVi2H"

// An adapter has the sshd of its own member certified, and no other.
func TestAnAdapterHasItsMembersServerCertified(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	authorities, err := sshca.New()
	require.NoError(t, err)
	s := &endpoint.Service{DB: k.DB, Keys: k.Ring, SSH: authorities}
	tenant := k.Tenant()
	project := k.Project(tenant)
	node, _ := k.Node(1)
	app := k.App("apps")
	document := platformtest.Document(app, "1.0.0", k.Adapter("http://adapter.test", nil),
		k.Artifact(lifecycle.StageActive))
	document["endpoints"] = []any{map[string]any{"name": "login", "title": "Login", "componentKey": "worker",
		"port": 22, "protocol": "ssh", "permissionKey": "apps.queue.submit"}}
	instance := k.Instance(project, k.Manifest(lifecycle.StageActive, document), lifecycle.InstanceRunning,
		k.Allocation(project, node))
	other := k.Instance(project, k.Manifest(lifecycle.StageActive, platformtest.Document(k.App("apps"), "1.0.0",
		k.Adapter("http://other.test", nil), k.Artifact(lifecycle.StageActive))), lifecycle.InstanceRunning,
		k.Allocation(project, node))
	var member ids.ID
	require.NoError(t, k.Admin.QueryRow(t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		instance.ID).Scan(&member))
	in := endpoint.HostCertificateInput{MemberID: member, PublicKey: hostKey}
	adapter := k.With(k.OperationToken(k.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning),
		authz.TaskRun))

	intruder := k.With(k.OperationToken(k.Operation(other, lifecycle.InstanceUpgrade, lifecycle.OperationRunning),
		authz.TaskRun))
	_, err = s.CertifyHost(intruder, in)
	require.True(t, fault.Is(err, fault.NotFound), "the token of another instance: %v", err)
	admin := k.As(k.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	_, err = s.CertifyHost(admin, in)
	require.True(t, fault.Is(err, fault.Forbidden), "a person: %v", err)
	_, err = s.CertifyHost(adapter, endpoint.HostCertificateInput{MemberID: member, PublicKey: "none"})
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	require.Zero(t, k.Count("audit_entry", "action = 'issueSshHostCertificate' AND allowed"))

	got, err := s.CertifyHost(adapter, in)
	require.NoError(t, err)
	read, _, _, _, err := ssh.ParseAuthorizedKey([]byte(got.Certificate))
	require.NoError(t, err)
	certificate := read.(*ssh.Certificate)
	require.EqualValues(t, ssh.HostCert, certificate.CertType)
	require.Equal(t, []string{string(member), "worker.0." + string(instance.ID), string(instance.ID)},
		certificate.ValidPrincipals)
	require.Equal(t, authorities.People(), got.PeopleAuthorities)
	require.Equal(t, []string{"login." + string(instance.ID)}, got.EndpointPrincipals)
	require.WithinDuration(t, time.Now().Add(endpoint.HostCertificateLife), got.ExpiresAt, time.Minute)
	require.Equal(t, 1, k.Count("audit_entry", "action = 'issueSshHostCertificate' AND allowed AND object_id = $1",
		member))

	name := "login"
	person, err := s.Certify(k.As(k.User(tenant, platformtest.In(authz.ProjectMember, project))),
		endpoint.CertificateInput{InstanceID: instance.ID, Endpoint: &name, PublicKey: hostKey})
	require.NoError(t, err)
	require.Contains(t, person.Principals, got.EndpointPrincipals[0], "whoever may open the endpoint is let in")
}
