package tunnel

import (
	"context"
	"fmt"
	"net"
	"time"
)

// KindSSH requests the SSH server of a member, which the agent runs for members that have none; its Spec is an SSH.
// Once it is granted, the agent offers a public key by OfferHostKey and receives a certificate for it by CertifyHost;
// SSH follows. All that was started for the stream ends with it.
const KindSSH = "ssh"

// SSH is the Spec of KindSSH.
type SSH struct {
	// Authorities are the keys that sign the certificates of people, as lines of an authorized_keys file.
	Authorities []string `json:"authorities"`
	// Principal is the principal that the certificate of a person who logs in must name.
	Principal string `json:"principal"`
	// At is the platform's time, in seconds since 1970: a node's own clock may be wrong.
	At int64 `json:"at"`
}

// hostKey is what an agent offers.
type hostKey struct {
	PublicKey string `json:"publicKey"`
}

// hostCertificate is the answer to it.
type hostCertificate struct {
	Certificate string `json:"certificate"`
}

// OfferHostKey writes a host's public key and returns the certificate that the platform signs for it.
func OfferHostKey(stream net.Conn, publicKey string) (certificate string, err error) {
	_ = stream.SetDeadline(time.Now().Add(openPatience))
	if err := writeLine(stream, hostKey{PublicKey: publicKey}); err != nil {
		return "", fmt.Errorf("offer a host key: %w", err)
	}
	var answered hostCertificate
	if err := readLine(stream, &answered); err != nil {
		return "", fmt.Errorf("read a host's certificate: %w", err)
	}
	return answered.Certificate, stream.SetDeadline(time.Time{})
}

// CertifyHost reads the public key that an agent offers and answers the certificate that sign returns for it.
func CertifyHost(ctx context.Context, stream net.Conn, sign func(publicKey string) (string, error)) error {
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = stream.SetDeadline(time.Now().Add(openPatience))
	var offered hostKey
	if err := readLine(stream, &offered); err != nil {
		return fmt.Errorf("read a host key: %w", err)
	}
	certificate, err := sign(offered.PublicKey)
	if err != nil {
		return err
	}
	if err := writeLine(stream, hostCertificate{Certificate: certificate}); err != nil {
		return fmt.Errorf("answer a host's certificate: %w", err)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return stream.SetDeadline(time.Time{})
}
