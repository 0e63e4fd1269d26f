// Package volume keeps the volumes of a node: files of a project that outlast its members.
//
//	DIR/                      of a storage, 0700
//	    vol_…/                a volume of a shared storage: a folder, which members of any node use at once
//	    vol_….img             a volume of a local storage: an ext4 file system, through a loop device
//	    .new-vol_…, .gone-…   what is being created or deleted, and is not a volume
//
// Owners on a volume are the members' own ids, 0 to 65,535, so that a user is the same in every member of a project,
// whichever ids a node runs it with. Volumes are mounted in members' containers alone, and never on the node.
package volume
