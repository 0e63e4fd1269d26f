// Package rootfs builds the root that members start from: a curated copy of what the node has installed, in versions.
//
//	DIR/VERSION/        the root; read by members through id-mapped mounts, never changed
//	DIR/VERSION.lock    locked, shared, by every process that hands the version out
//	DIR/build.lock      locked by the one that builds
//
// It is an allow-list. Of /usr it takes what every user of the node may read; of /etc the names in etc.allow, and of
// these only files that everyone may read and that hold no credential; of /var empty folders and the package database;
// of the accounts the system's own, without passwords. Nothing else of the node exists in it, and what the node
// installs later is in the next version only. A whiteout over the node's own root cannot promise that: what appears
// later is not hidden.
package rootfs
