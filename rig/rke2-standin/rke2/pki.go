package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// How long authorities and certificates hold, as with RKE2.
const (
	authorityAge   = 10 * 365 * 24 * time.Hour
	certificateAge = 365 * 24 * time.Hour
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// authorities are the cluster's own, by their path below server/tls without the ending.
var authorities = []string{"server-ca", "client-ca", "request-header-ca", "etcd/server-ca", "etcd/peer-ca"}

// shared are the files below server/tls that all servers have in common: a joining one is given them.
func shared() []string {
	list := []string{"service.key"}
	for _, name := range authorities {
		list = append(list, name+".crt", name+".key")
	}
	return list
}

// write replaces a file as a whole.
func write(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// found makes the authorities of a new cluster, and the key of its service accounts.
func found(dir string) error {
	for _, name := range authorities {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		now := time.Now()
		template := &x509.Certificate{
			SerialNumber: serial(), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(authorityAge), IsCA: true,
			Subject:               pkix.Name{CommonName: fmt.Sprintf("rke2-%s@%d", filepath.ToSlash(name), now.Unix())},
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
			BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			return err
		}
		if err := writePair(filepath.Join(dir, name), der, key); err != nil {
			return err
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return write(filepath.Join(dir, "service.key"), pem.EncodeToMemory(block), 0o600)
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return n
}

func writePair(path string, der []byte, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := write(path+".crt", certificate, 0o644); err != nil {
		return err
	}
	return write(path+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}

// authority is a certificate with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func loadAuthority(path string) (authority, error) {
	certificate, err := readPEM(path + ".crt")
	if err != nil {
		return authority{}, err
	}
	key, err := readPEM(path + ".key")
	if err != nil {
		return authority{}, err
	}
	var a authority
	if a.certificate, err = x509.ParseCertificate(certificate); err != nil {
		return a, err
	}
	a.key, err = x509.ParseECPrivateKey(key)
	return a, err
}

func readPEM(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM", path)
	}
	return block.Bytes, nil
}

// request is what a certificate is for: a client has a name and groups, a server names and addresses as well.
type request struct {
	name   string
	groups []string
	hosts  []string
	// serves and asks say whose side of a connection it is for.
	serves, asks bool
}

// sign makes a certificate for a public key.
func (a authority) sign(r request, public any) ([]byte, error) {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(certificateAge),
		Subject:  pkix.Name{CommonName: r.name, Organization: r.groups},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if r.serves {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.asks {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, host := range r.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
}

// issue writes a certificate with a new key, both below path, signed by the authority below by.
func issue(by, path string, r request) error {
	signer, err := loadAuthority(by)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := signer.sign(r, &key.PublicKey)
	if err != nil {
		return err
	}
	return writePair(path, der, key)
}

// equip issues all certificates of a server.
func equip(s settings, apiAddress string) error {
	tls := s.path("server/tls")
	hosts := append([]string{"127.0.0.1", "localhost", s.nodeIP(), s.listens(), s.nodeName(), apiAddress, "kubernetes",
		"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + s.critical()["cluster-domain"]},
		s.values["tls-san"]...)
	client := func(name string, groups ...string) request { return request{name: name, groups: groups, asks: true} }
	for path, one := range map[string]struct {
		by string
		request
	}{
		"serving-kube-apiserver": {"server-ca", request{name: "kube-apiserver", hosts: hosts, serves: true}},
		"serving-supervisor":     {"server-ca", request{name: "rke2", hosts: hosts, serves: true}},
		"client-kube-apiserver":  {"client-ca", client("system:apiserver", "system:masters")},
		"client-admin":           {"client-ca", client("system:admin", "system:masters")},
		"client-controller":      {"client-ca", client("system:kube-controller-manager")},
		"client-scheduler":       {"client-ca", client("system:kube-scheduler")},
		"client-supervisor":      {"client-ca", client("system:rke2-supervisor", "system:masters")},
		"client-auth-proxy":      {"request-header-ca", client("system:auth-proxy")},
		"serving-kube-controller-manager": {"server-ca", request{name: "kube-controller-manager",
			hosts: []string{"127.0.0.1", "localhost"}, serves: true}},
		"etcd/server-client": {"etcd/server-ca", request{name: "etcd-server", hosts: hosts, serves: true, asks: true}},
		"etcd/client":        {"etcd/server-ca", client("etcd-client")},
		"etcd/peer-server-client": {"etcd/peer-ca", request{name: "etcd-peer", hosts: hosts, serves: true,
			asks: true}},
	} {
		if err := issue(filepath.Join(tls, one.by), filepath.Join(tls, path), one.request); err != nil {
			return fmt.Errorf("certificate %s: %w", path, err)
		}
	}
	return nil
}

// certificates prints what "rke2 certificate check" does: each certificate of this node, and until when it holds.
func certificates(args []string) error {
	if len(args) == 0 || args[0] != "check" {
		return errors.New("certificate: the stand-in has the command check alone")
	}
	flags, err := parse(dropOutput(args[1:]))
	if err != nil {
		return err
	}
	s := settings{role: "server", values: flags}
	fmt.Printf("%-45s %-45s %-12s %s\n", "FILENAME", "SUBJECT", "STATUS", "EXPIRES")
	for _, pattern := range []string{"server/tls/*.crt", "server/tls/etcd/*.crt", "agent/*.crt"} {
		paths, _ := filepath.Glob(s.path(pattern))
		for _, path := range paths {
			der, err := readPEM(path)
			if err != nil {
				return err
			}
			certificate, err := x509.ParseCertificate(der)
			if err != nil {
				return err
			}
			state := "OK"
			if left := time.Until(certificate.NotAfter); left < 0 {
				state = "EXPIRED"
			} else if left < 120*24*time.Hour {
				state = "WARNING"
			}
			fmt.Printf("%-45s %-45s %-12s %s\n", filepath.Base(path), certificate.Subject, state,
				certificate.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// dropOutput leaves --output out, which names a form that the stand-in has only one of.
func dropOutput(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--output" || args[i] == "-o" {
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return kept
}
