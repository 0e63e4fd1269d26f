// Package content is the node's cache of parts of artifacts, by digest, on the disk.
//
//	DIR/sha256/HEX    a part: whole, verified, synced before it got its name
//	DIR/partial/HEX   a part that is not complete; a crash does not lose what is there
//
// A task leases all its parts at once: before anything is fetched, they are pinned, and space for those that are
// missing is reserved. So no two tasks can each have half of what they need. What no task leases is removed when space
// is needed, least recently used first.
//
// What comes is hashed and written piece by piece beside each other, past the page cache where the filesystem lets it
// (disk.go).
//
// The disk may change what was verified, so a name proves nothing. Bytes are hashed again as they are read, and a part
// that does not match its name is removed and fetched again.
package content
