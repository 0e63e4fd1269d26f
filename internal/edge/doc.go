// Package edge stands between the network and the API: who a request comes from, how much one
// caller may ask for, what happens to guesses, the headers of every answer, and certificates.
//
//	connection ── TLS (Certificates) ── Proxies: address, scheme ── Headers ── Limits by address ── transport
//	    ── credential read ── Guesses ── Limits by subject ── verb
//
// Everything before the credential is known counts by network address, and everything after it by
// the credential's fingerprint, which nobody can forge of another. Tables are bounded: the caller
// that was seen longest ago is forgotten first, and begins anew when it comes back. Nothing here
// asks the database.
package edge
