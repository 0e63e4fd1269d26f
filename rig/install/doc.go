// Package install sets a whole local installation up on one machine and takes it down again: what `make run` and the
// end-to-end tests run on.
//
// Up brings up what needs no program of ours: prerequisites, PostgreSQL in the data folder (or the server of
// DatabaseURL), an OCI registry, and, as root, the lab's switch. Then its caller adds the platform's own programs with
// Program and nodes with AddNode, in the order it likes. Close stops all of it, last first. Should the process be
// killed instead, the kernel ends every program, node and database server that it started.
//
//	DIR/lock          held while a rig uses the folder
//	DIR/postgres/     the database cluster          DIR/registry/  blobs and manifests
//	DIR/logs/         one bounded file per program  DIR/nodes/NAME/ what a node's agent keeps
package install
