// Package adaptertest is a platform for the tests of an adapter: it signs requests as the platform
// does, serves the key set and as much of the public API as an adapter uses, and really carries out
// node tasks on the machine of the test. An adapter under test cannot distinguish it from the
// platform.
//
// Members are plain processes with a directory each, or, as root on Linux, processes with mount and
// PID namespaces of their own over an overlay of the machine's root ([Namespaces]). Supervised
// processes are not restarted when they end: a test wants to see that.
package adaptertest
