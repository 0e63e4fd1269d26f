// Command kube is Kubernetes and etcd in one program, as upstream publishes them: the name that it is called by, or its
// first argument, chooses which of them it is.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // and of the build
	"k8s.io/component-base/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// releaseVar names the environment variable with the release that is said: another one of the same Kubernetes than that
// which this was built as.
const releaseVar = "RKE2_STANDIN_RELEASE"

func main() {
	if release := os.Getenv(releaseVar); release != "" {
		if err := version.SetDynamicVersion(release); err != nil {
			fmt.Fprintf(os.Stderr, "kube: %s: %v\n", releaseVar, err)
			os.Exit(2)
		}
	}
	name, args := filepath.Base(os.Args[0]), os.Args
	if name == "kube" && len(args) > 1 {
		name, args = args[1], args[1:]
	}
	os.Args = append([]string{name}, args[1:]...)
	os.Exit(run(name))
}

// run runs the program of this name and returns its exit code.
func run(name string) int {
	switch name {
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(manager.NewControllerManagerCommand())
	case "kube-scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	case "kubelet":
		return cli.Run(kubelet.NewKubeletCommand(context.Background()))
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return 0
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "etcdctl":
		ctlv3.MustStart()
		return 0
	case "etcdutl":
		root := &cobra.Command{Use: "etcdutl", SilenceUsage: true}
		root.AddCommand(etcdutl.NewSnapshotCommand())
		return cli.Run(root)
	}
	fmt.Fprintf(os.Stderr, "kube: there is no program %q here\n", name)
	return 2
}
