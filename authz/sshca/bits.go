package sshca

import (
	"crypto/rsa"

	"golang.org/x/crypto/ssh"
)

// bitsOf is the length of an RSA key; 0 for any other.
func bitsOf(key ssh.PublicKey) int {
	known, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	public, ok := known.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return public.N.BitLen()
}
