package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certify writes a certificate for loopback that is its own authority, and its key, into a folder.
func certify(folder string) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	certificate, key = filepath.Join(folder, "relay-certificate.pem"), filepath.Join(folder, "relay-key.pem")
	for _, file := range []struct {
		name, kind string
		bytes      []byte
	}{{certificate, "CERTIFICATE", der}, {key, "PRIVATE KEY", encoded}} {
		if err := os.WriteFile(file.name, pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.bytes}),
			0o600); err != nil {
			return "", "", err
		}
	}
	return certificate, key, nil
}
