// Package content is the node's cache of parts of artifacts, by digest, on the disk.
//
//	DIR/sha256/HEX    a part: whole, verified, synced before it got its name
//	DIR/partial/HEX   a part on its way, gone on with after a crash from where it is
//
// A task leases all its parts at once: they are pinned, and room for those that lack is set aside, before anything is
// fetched. So two tasks never hold half of what each needs. What nobody has leased goes when room is needed, least
// recently used first.
//
// What comes is hashed and written piece by piece beside each other, past the page cache where the filesystem lets it
// (disk.go).
//
// A name is no proof: the disk may have changed what was verified. Bytes are hashed again as they are read, and a part
// that is not what its name says is dropped and fetched anew.
package content
