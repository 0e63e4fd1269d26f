// Package prereq knows what the program and its tests need from the machine beyond Go and Node, says what is missing,
// and installs it where it may.
//
// The table in table.go names each feature, how its presence is recognised, and the Debian packages that bring it. As
// root on a machine with apt-get, Ensure installs; anywhere else it returns an error that says exactly what to install.
// Nothing it installs is started: a policy-rc.d that answers 101 is in place while apt runs, Debian's PostgreSQL
// packages are set to create no cluster, and a cloud-init that comes this way leaves the machine's own next boot alone.
//
// Calls from several processes (the test binaries of one run) are serialised by a file lock.
package prereq
