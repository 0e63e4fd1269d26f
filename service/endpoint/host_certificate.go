package endpoint

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// HostCertificateLife is how long the certificate of a member's own SSH server is good. The member's adapter requests
// another one well before.
const HostCertificateLife = 30 * 24 * time.Hour

// connectionLife is how long a host certificate is good that serves one connection.
const connectionLife = 5 * time.Minute

// hostCertificateAction is the verb's name in the audit.
const hostCertificateAction = "issueSshHostCertificate"

// HostCertificateInput requests the certificate of the SSH server that a member runs itself.
type HostCertificateInput struct {
	MemberID ids.ID
	// PublicKey is the server's host key, a line as ssh-keygen writes it.
	PublicKey string
	Reason    string
}

// HostCertified is the certificate of a host, and what its server must know.
type HostCertified struct {
	// Certificate is a line for sshd's HostCertificate.
	Certificate string
	Principals  []string
	ExpiresAt   time.Time
	// PeopleAuthorities sign the certificates of people: lines for sshd's TrustedUserCAKeys.
	PeopleAuthorities []string
	// EndpointPrincipals are, for each endpoint of protocol ssh of this member's component, what the certificate of
	// everybody names who may open it: lines for sshd's AuthorizedPrincipalsFile.
	EndpointPrincipals []string
}

// CertifyHost signs the host key of a member's own SSH server. Key: task.run on the member's instance, as the caller
// that runs tasks in a member also sets its server up. The certificate names this member alone, by id, by place, and as
// one of its instance. It ends after HostCertificateLife.
//
// Faults: INVALID_ARGUMENT (input.publicKey), NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION of a member that is removed.
func (s *Service) CertifyHost(ctx context.Context, in HostCertificateInput) (*HostCertified, error) {
	wrong := &check.Input{}
	key, err := sshca.ParseKey(in.PublicKey)
	if err != nil {
		wrong.Bad(publicKeyAt, "%s", err)
	}
	wrong.Reason("input.reason", in.Reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	out := &HostCertified{PeopleAuthorities: s.SSH.People()}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		member, instance, err := memberOf(ctx, t, hostCertificateAction, authz.TaskRun, in.MemberID)
		if err != nil {
			return err
		}
		where := object(instance)
		if err := audit.Require(t, hostCertificateAction, authz.TaskRun, where, member.ID); err != nil {
			return err
		}
		if member.Status == lifecycle.MemberRemoved {
			return fault.New(fault.FailedPrecondition, "member %s is removed", member.ID).At("input.memberId")
		}
		if out.EndpointPrincipals, err = endpointPrincipals(ctx, t, member, instance); err != nil {
			return err
		}
		out.Principals = append(hostNames(member), string(instance.ID))
		out.ExpiresAt = t.Now.Add(HostCertificateLife).Truncate(time.Second)
		var serial uint64
		out.Certificate, serial, err = s.SSH.SignHost(sshca.Certificate{Key: key, KeyID: string(member.ID),
			Principals: out.Principals, Now: t.Now, Until: out.ExpiresAt})
		if err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{Action: hostCertificateAction, Key: authz.TaskRun, Object: where,
			ObjectID: member.ID, Reason: in.Reason, After: map[string]any{"serial": fmt.Sprint(serial),
				"publicKey": ssh.FingerprintSHA256(key), "principals": out.Principals, "expiresAt": out.ExpiresAt}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// hostNames are the names of a member in its certificate: its id, and its place in its instance.
func hostNames(member *db.Member) []string {
	return []string{string(member.ID), fmt.Sprintf("%s.%d.%s", member.ComponentKey, member.Ordinal, member.InstanceID)}
}

// endpointPrincipals are what members' own servers accept.
func endpointPrincipals(ctx context.Context, t *tx.Tx, member *db.Member, instance *db.Instance) ([]string, error) {
	stored, err := t.Manifest.Get(ctx, instance.ManifestID)
	if err != nil {
		return nil, fmt.Errorf("load manifest %s: %w", instance.ManifestID, err)
	}
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", stored.ID, err)
	}
	var all []string
	for _, one := range document.Endpoints {
		if one.ComponentKey == member.ComponentKey && one.Protocol == manifest.ProtocolSSH {
			all = append(all, one.Name+"."+string(instance.ID))
		}
	}
	return all, nil
}
