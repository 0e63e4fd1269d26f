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

// CertificateLife is how long a person may log in with a certificate. It bounds what a stolen one is good for; a
// session that has begun ends with the right, and not with the certificate.
const CertificateLife = 5 * time.Minute

// certifyAction is the verb's name in the audit.
const certifyAction = "issueSshCertificate"

// publicKeyAt is the field of a public key in inputs.
const publicKeyAt = "input.publicKey"

// CertificateInput requests a certificate with which the caller logs in at the members of an instance.
type CertificateInput struct {
	InstanceID ids.ID
	// Endpoint is one of protocol ssh, whose own server is logged in to; nil for the one that the platform runs in
	// every member.
	Endpoint *string
	// PublicKey is a line as ssh-keygen writes it.
	PublicKey string
	// Reason is kept in the audit; it must be given without an endpoint.
	Reason string
}

// Certified is a certificate of a person, and what their client must know.
type Certified struct {
	// Certificate is a line for a file beside the key.
	Certificate string
	Principals  []string
	ExpiresAt   time.Time
	// HostAuthorities sign the certificates of the members' hosts: lines without what they are good for.
	HostAuthorities []string
	// HostNames are the patterns of the names in those certificates.
	HostNames []string
}

// Certify signs a certificate of CertificateLife for the caller's public key. Its principals are the caller's id at
// this instance, and for an endpoint also the endpoint at this instance: no login name of a member ever is one, so that
// a server that is not set up for them lets no one in.
//
// It requires <family>.member.exec and the highest risk, or the key of the endpoint. Faults: INVALID_ARGUMENT
// (input.publicKey, input.reason), NOT_FOUND, FORBIDDEN, POLICY_DENIED (access: EXEC or ENDPOINTS), FAILED_PRECONDITION
// of an endpoint of another protocol.
func (s *Service) Certify(ctx context.Context, in CertificateInput) (*Certified, error) {
	key, err := in.check()
	if err != nil {
		return nil, err
	}
	if in.Endpoint == nil {
		return s.certify(ctx, in, key, "", func(ctx context.Context, t *tx.Tx) (*db.Instance, authz.Key, error) {
			instance, err := t.Instance.Get(ctx, in.InstanceID)
			if db.IsNotFound(err) {
				return nil, 0, audit.Missing(t, certifyAction, authz.FamilyKeys("member.exec")[0], in.InstanceID)
			}
			if err != nil {
				return nil, 0, fmt.Errorf("load instance %s: %w", in.InstanceID, err)
			}
			by, err := mayEnter(ctx, t, certifyAction, instance, in.InstanceID, "input.instanceId")
			return instance, by, err
		})
	}
	found, err := s.Find(ctx, Wanted{InstanceID: in.InstanceID, Endpoint: *in.Endpoint})
	if err != nil {
		return nil, err
	}
	if found.Endpoint.Protocol != manifest.ProtocolSSH {
		return nil, fault.New(fault.FailedPrecondition, "endpoint %q uses %s, not ssh: use `appctl forward`",
			*in.Endpoint,
			found.Endpoint.Protocol).At("input.endpoint")
	}
	return s.certify(ctx, in, key, *in.Endpoint, func(ctx context.Context, t *tx.Tx) (*db.Instance, authz.Key, error) {
		where := object(found.Instance)
		if err := audit.Require(t, certifyAction, found.Key, where, in.InstanceID); err != nil {
			return nil, 0, err
		}
		if err := t.Actor.RequireRisk(lifecycle.RiskWrite); err != nil {
			return nil, 0, audit.Refused(t, certifyAction, found.Key, where, in.InstanceID, err)
		}
		return found.Instance, found.Key, allowed(ctx, t, certifyAction, found)
	})
}

// check reads the public key and notes what is wrong with the input.
func (in *CertificateInput) check() (ssh.PublicKey, error) {
	wrong := &check.Input{}
	key, err := sshca.ParseKey(in.PublicKey)
	if err != nil {
		wrong.Bad(publicKeyAt, "%s", err)
	}
	if in.Endpoint == nil {
		wrong.Text("input.reason", in.Reason, leastReason, maxReason)
	} else {
		wrong.Reason("input.reason", in.Reason)
	}
	return key, wrong.Err()
}

// certify signs for who may, and notes it in the audit.
func (s *Service) certify(ctx context.Context, in CertificateInput, key ssh.PublicKey, endpoint string,
	may func(context.Context, *tx.Tx) (*db.Instance, authz.Key, error)) (*Certified, error) {
	out := &Certified{HostAuthorities: s.SSH.Hosts(), HostNames: []string{"mem_*", "*." + string(in.InstanceID),
		string(in.InstanceID)}}
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		instance, by, err := may(ctx, t)
		if err != nil {
			return err
		}
		if t.Actor.Kind != authz.KindUser && t.Actor.Kind != authz.KindServiceAccount {
			return audit.Refused(t, certifyAction, by, object(instance), instance.ID,
				fault.New(fault.Forbidden, "only people and service accounts can have certificates"))
		}
		out.ExpiresAt = t.Now.Add(CertificateLife).Truncate(time.Second)
		if ends := t.Actor.ExpiresAt; !ends.IsZero() && ends.Before(out.ExpiresAt) {
			out.ExpiresAt = ends.Truncate(time.Second)
		}
		out.Principals = principals(t.Actor.ID, endpoint, instance.ID)
		line, serial, err := s.SSH.SignPerson(sshca.Certificate{Key: key, KeyID: string(t.Actor.ID),
			Principals: out.Principals, Now: t.Now, Until: out.ExpiresAt})
		if err != nil {
			return err
		}
		out.Certificate = line
		return audit.Write(ctx, t, audit.Entry{Action: certifyAction, Key: by, Object: object(instance),
			ObjectID: instance.ID,
			Reason:   in.Reason, After: map[string]any{"endpoint": endpoint, "serial": fmt.Sprint(serial),
				"publicKey": ssh.FingerprintSHA256(key), "principals": out.Principals, "expiresAt": out.ExpiresAt}})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// principals are what a certificate of a person is good for: the person at the instance, in its members; or the person,
// and anyone who may, at its endpoint.
func principals(person ids.ID, endpoint string, instance ids.ID) []string {
	if endpoint == "" {
		return []string{string(person) + "@" + string(instance)}
	}
	at := endpoint + "." + string(instance)
	return []string{string(person) + "@" + at, at}
}
