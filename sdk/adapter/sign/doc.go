// Package sign is the signature of requests to an adapter: an EdDSA JWT that is bound to the adapter's name, the
// method, the path and the SHA-256 of the body. The platform signs with a [Signer]; an adapter checks with a
// [Verifier], whose keys a [KeySet] fetches from the platform.
package sign
