package controller

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// secure wraps the listener in TLS where a certificate was given. The files are read again for every handshake, of
// which the platform makes few: a renewed certificate needs no restart.
func secure(listener net.Listener, o options) (net.Listener, error) {
	if o.tlsCert == "" {
		return listener, nil
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return read() }}
	if o.clientCA != "" {
		text, err := os.ReadFile(o.clientCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-client-ca: %w", err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-client-ca: %s has no certificate", o.clientCA)
		}
	}
	return tls.NewListener(listener, config), nil
}
