// Package fetch brings artifacts from the platform into the node's cache.
//
//	open the delivery ──▶ index? pick the platform's manifest ──▶ lease all its parts ──▶ fetch what lacks, hashing
//
// A delivery is opened by the task's id and gives an address and a token; the node knows no source and no credential of
// one. What an artifact is made of is read from its manifests, each verified by the digest that names it, from the
// artifact's own digest down: the platform's list is asked for the size of the first alone.
//
// A source, a platform or a network that is away is asked again until the task's time is over, and a part that broke
// off is gone on with by Range. Bytes that are not what they should be are asked for three times in all.
package fetch
