// Package standin takes the place of the program rke2 in tests. It is not RKE2, and its --version states that.
//
// It keeps what the controller relies on: the subcommands server and agent with their config file and
// flags, the token files and who may use which token, node passwords that outlive their nodes, the
// members of etcd with its quorum, and kubectl on Nodes, Pods, budgets and evictions. Nothing runs in
// its pods, and its supervisor and API server have no ports: all programs of a test read and write one
// folder. So several clusters fit on one machine.
package standin
