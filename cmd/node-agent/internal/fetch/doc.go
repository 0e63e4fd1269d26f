// Package fetch brings artifacts from the platform into the node's cache.
//
//	open the delivery ──▶ index? pick the platform's manifest ──▶ lease all its parts ──▶ fetch what lacks, hashing
//
// A delivery is opened by the task's id and gives an address and a token; the node knows no source and no credential of
// one. The list of an artifact's parts is read from its manifests, each verified by the digest that names it, from the
// artifact's own digest down. The platform's list is used only for the size of the first.
//
// A request to a source, a platform or a network that does not answer is repeated until the task's time is over. A part
// that broke off continues by Range. A part whose bytes are wrong is fetched three times in all.
package fetch
