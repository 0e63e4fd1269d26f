package drills_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/signing"
)

var errNotYet = errors.New("not yet")

// authority is a certificate authority of a drill's.
type authority struct {
	root *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

// certify makes an authority.
func (w *ward) certify() *authority {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.fine(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drill"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	w.fine(err)
	parsed, err := x509.ParseCertificate(made)
	w.fine(err)
	return &authority{parsed, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))}
}

// certificate is one for this machine that ends then.
func (a *authority) certificate(w *ward, until time.Time) tls.Certificate {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.fine(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "adapter"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	made, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	w.fine(err)
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}

// secured serves a player over TLS with a certificate that the drill may change, and registers it there.
func (w *ward) secured(p *player, pinned *authority, first tls.Certificate) (change func(tls.Certificate), url string) {
	w.t.Helper()
	now := first
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.fine(err)
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &now, nil }}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	w.t.Cleanup(func() { _ = server.Close() })
	url = "https://" + listener.Addr().String()
	w.register(url, &pinned.pem)
	return func(next tls.Certificate) { now = next }, url
}

// expiryDrills are those of what is near its end.
var expiryDrills = map[string]drill{
	"expiry/accounts/near": {
		quick: true,
		fault: func(w *ward) {
			account, _ := w.account("project.read")
			soon := time.Now().Add(48 * time.Hour)
			w.keyed(account, &soon)
			w.mend = func() {
				listed, err := gql.ListServiceAccounts(w.ctx, w.admin, w.project, 100, "")
				w.fine(err)
				for _, edge := range listed.ServiceAccounts.Edges {
					for _, key := range edge.Node.Keys {
						if edge.Node.Id == account && key.ExpiresAt != nil {
							_, err := gql.RotateServiceAccountKey(w.ctx, w.admin,
								gql.RotateServiceAccountKeyInput{KeyId: key.Id,
									OverlapSeconds: 60, ExpiresAt: to(time.Now().AddDate(0, 3, 0)),
									Reason: "the runbook says so"})
							w.fine(err)
						}
					}
				}
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"expiry/accounts/expired": {
		fault: func(w *ward) {
			account, _ := w.account("project.read")
			end := time.Now().Add(2 * time.Second)
			caller := w.keyed(account, &end)
			w.eventually("the key ends", func() error {
				if _, err := gql.GetViewer(w.ctx, caller); err == nil {
					return errNotYet
				}
				return nil
			})
			w.refused(func() error { _, err := gql.GetViewer(w.ctx, caller); return err })
			w.mend = func() { caller = w.keyed(account, nil) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"expiry/edge/near": {
		fault: func(w *ward) {
			ca := w.certify()
			now := ca.certificate(w, time.Now().Add(48*time.Hour))
			target, err := url.Parse(shared.URL)
			w.fine(err)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			w.fine(err)
			front := &http.Server{Handler: httputil.NewSingleHostReverseProxy(target), ReadHeaderTimeout: time.Minute,
				TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12,
					GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &now, nil }}}
			go func() { _ = front.ServeTLS(listener, "", "") }()
			w.t.Cleanup(func() { _ = front.Close() })
			w.walker.URL = "https://" + listener.Addr().String()
			w.mend = func() { now = ca.certificate(w, time.Now().AddDate(0, 3, 0)) }
		},
		cure: func(w *ward) { w.mend() },
	},
	"expiry/signers/near": {
		fault: func(w *ward) {
			r := w.opens().covered(gql.SignaturePolicyRequired)
			key, err := signing.NewKey(signing.ECDSA)
			w.fine(err)
			soon := time.Now().Add(48 * time.Hour)
			r.trusts(key, &soon)
			w.mend = func() {
				next, err := signing.NewKey(signing.ECDSA)
				w.fine(err)
				r.trusts(next, nil)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"expiry/adapters/expired": {
		fault: func(w *ward) {
			p, ca := w.plays(), w.certify()
			change, _ := w.secured(p, ca, ca.certificate(w, time.Now().Add(-time.Hour)))
			w.launch()
			w.mend = func() { change(ca.certificate(w, time.Now().Add(time.Hour))) }
		},
		cure: launched,
	},
	"expiry/adapters/other-authority": {
		fault: func(w *ward) {
			p, pinned, other := w.plays(), w.certify(), w.certify()
			_, url := w.secured(p, pinned, other.certificate(w, time.Now().Add(time.Hour)))
			w.launch()
			w.mend = func() { w.register(url, &other.pem) }
		},
		cure: launched,
	},
}

// operatorDrills are those of the operator's runbook that no other has.
var operatorDrills = map[string]drill{
	"operator/credential-has-leaked/key": {
		fault: func(w *ward) {
			account, leaked := w.account("project.read")
			w.mend = func() {
				listed, err := gql.ListServiceAccounts(w.ctx, w.admin, w.project, 100, "")
				w.fine(err)
				for _, edge := range listed.ServiceAccounts.Edges {
					if edge.Node.Id == account {
						_, err := gql.RevokeServiceAccountKey(w.ctx, w.admin, edge.Node.Keys[0].Id, "leaked")
						w.fine(err)
					}
				}
				_, err = gql.GetViewer(w.ctx, leaked)
				if client.CodeOf(err) != client.CodeUnauthenticated {
					w.t.Fatalf("the leaked key answers %v", err)
				}
				_, err = gql.GetViewer(w.ctx, w.keyed(account, nil))
				w.fine(err)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"operator/credential-has-leaked/session": {
		fault: func(w *ward) {
			person, err := shared.As(w.ctx, shared.Demo.ViewerID)
			w.fine(err)
			w.mend = func() {
				_, err := gql.LogoutEverywhere(w.ctx, w.operator, shared.Demo.ViewerID, "a stolen laptop")
				w.fine(err)
				_, err = gql.GetViewer(w.ctx, person)
				if client.CodeOf(err) != client.CodeUnauthenticated {
					w.t.Fatalf("the session answers %v", err)
				}
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"operator/many-refusals/forbidden": {
		fault: func(w *ward) {
			account, caller := w.account("project.read", "allocation.read")
			w.refused(func() error {
				got, err := gql.RequestAllocation(w.ctx, caller, gql.RequestAllocationInput{ProjectId: w.project,
					Shape: gql.CapacityShapeGpuSlice, Count: 1, GpuCount: 1, IdempotencyKey: client.NewKey()})
				if err == nil {
					w.givesBack(got.RequestAllocation.Allocations[0].Id, w.admin)
				}
				return err
			})
			w.mend = func() {
				_, err := gql.UpdateServiceAccount(w.ctx, w.admin,
					gql.UpdateServiceAccountInput{ServiceAccountId: account,
						PermissionKeys: []string{"project.read", "allocation.read", "allocation.create"},
						Reason:         "the runbook says so"})
				w.fine(err)
			}
		},
		cure: func(w *ward) { w.mend() },
	},
	"operator/many-refusals/not-found": {
		fault: func(w *ward) {
			_, caller := w.account("project.read", "operation.cancel", "operation.read")
			wrong := true
			elsewhere, err := gql.ListOperations(w.ctx, w.operator, shared.Demo.LabProjectID, nil, 1, "")
			w.fine(err)
			w.refused(func() error {
				if !wrong {
					return nil // the script asks for what there is
				}
				_, err := gql.CancelOperation(w.ctx, caller, gql.CancelOperationInput{
					OperationId: elsewhere.Operations.Edges[0].Node.Id, Reason: "a script of another project"})
				return err
			})
			w.mend = func() { wrong = false }
		},
		cure: func(w *ward) { w.mend() },
	},
}
