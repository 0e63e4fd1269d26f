package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// request is a certificate signing request of the API.
type request struct {
	// Text is the request in PEM, and Seconds how long the certificate is to live.
	Text    []byte `json:"text"`
	Seconds int    `json:"seconds"`
	// Signed is the certificate in PEM, once it was approved.
	Signed []byte `json:"signed"`
}

// authority makes the CA of a cluster: its certificate and key in PEM.
func authority() (certificate, key string, err error) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{CommonName: "rke2-server-ca (stand-in)"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().AddDate(10, 0, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, made.Public(), made)
	if err != nil {
		return "", "", err
	}
	held, err := x509.MarshalPKCS8PrivateKey(made)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: held})), err
}

// take is kubectl create -f - and apply -f -: of a request it keeps the request, of a list the bindings of groups.
func (a api) take() error {
	var body struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Request           string
			SignerName        string
			ExpirationSeconds int
		}
		Items []struct {
			Kind     string
			RoleRef  struct{ Name string }
			Subjects []struct{ Name string }
			Metadata struct{ Name string }
		}
	}
	if err := json.NewDecoder(a.in).Decode(&body); err != nil {
		return err
	}
	if body.Kind == "List" {
		for _, one := range body.Items {
			a.Applied[one.Kind+" "+one.Metadata.Name] = true
			for _, subject := range one.Subjects {
				a.Bindings[subject.Name+" "+one.RoleRef.Name] = true
			}
		}
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(body.Spec.Request)
	if err != nil || body.Kind != "CertificateSigningRequest" ||
		body.Spec.SignerName != "kubernetes.io/kube-apiserver-client" {
		return refuse("Error from server (BadRequest): the stand-in does not support this request: %s", body.Kind)
	}
	a.Requests[body.Metadata.Name] = &request{Text: text, Seconds: body.Spec.ExpirationSeconds}
	return nil
}

// approve signs a request as it is, as the controller manager does.
func (a api) approve(name string) error {
	if _, err := os.Stat(filepath.Join(a.dir, refusesApprovals)); err == nil {
		return refuse("Error from server (Forbidden): the test refuses every approval")
	}
	held := a.Requests[name]
	if held == nil {
		return refuse("Error from server (NotFound): certificatesigningrequests %q not found", name)
	}
	block, _ := pem.Decode(held.Text)
	ca, _ := pem.Decode([]byte(a.CA))
	key, _ := pem.Decode([]byte(a.CAKey))
	if block == nil || ca == nil || key == nil {
		return refuse("the request or the CA is not PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	parent, err := x509.ParseCertificate(ca.Bytes)
	if err != nil {
		return err
	}
	signer, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return err
	}
	serial := big.NewInt(int64(number())) // #nosec G115 -- of a stand-in: a random number without its sign
	made, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: serial,
		Subject: asked.Subject, NotBefore: time.Now().Add(-time.Minute),
		NotAfter:    time.Now().Add(time.Duration(held.Seconds) * time.Second),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, parent, asked.PublicKey, signer)
	held.Signed = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	return err
}

// certificate is what kubectl get csr prints with the template of its certificate.
func (a api) certificate(name string) error {
	held := a.Requests[name]
	if held == nil {
		return refuse("Error from server (NotFound): certificatesigningrequests %q not found", name)
	}
	_, err := io.WriteString(a.out, base64.StdEncoding.EncodeToString(held.Signed))
	return err
}
