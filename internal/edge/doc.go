// Package edge is what lies between the network and the API: where a request comes from, how much one caller may
// request, what happens to guesses, the headers of every answer, and certificates.
//
//	connection ── TLS (Certificates) ── Proxies: address, scheme ── Headers ── Limits by address ── transport
//	    ── credential read ── Guesses ── Limits by subject ── verb
//
// Everything before the credential is known counts by network address, and everything after it by the credential's
// fingerprint, which no caller can forge for another. Tables are bounded: the caller that was seen longest ago is
// forgotten first, and starts from nothing when it comes back. Nothing here queries the database.
package edge
