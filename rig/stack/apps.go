package stack

import (
	"github.com/gpuaas/app-platform/internal/prereq"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// App is a reference app: its controller, and what the machine needs to run it.
type App struct {
	Slug       string // as in the manifest
	Controller string // program and registered adapter's folder, such as "hello-cluster-controller"
	Image      string // program that its image is built from; empty for an app whose artifact is its controller
	Family     string
	Features   []prereq.Feature
	Rooted     bool                 // needs nodes with namespaces
	Whole      bool                 // needs whole nodes: its members are plain processes there
	Smoke      []gql.ComponentInput // what a smoke launch asks for; nil for the manifest's defaults
	// Program is the path of the controller's program; empty for the one in Bin.
	Program string
}

// Apps are the reference apps of this repository.
func Apps() []App {
	return []App{
		{Slug: "hello-cluster", Controller: "hello-cluster-controller", Family: "apps"},
		{Slug: "slurm", Controller: "slurm-reference-controller", Family: "scheduler",
			Features: []prereq.Feature{prereq.Slurm}, Rooted: true},
		{Slug: "web-notebook", Controller: "oci-launch-controller", Image: "web-notebook", Family: "apps",
			Features: []prereq.Feature{prereq.CloudInit, prereq.Containers}, Rooted: true},
	}
}

// Kubernetes is the reference app that needs whole nodes with RKE2, or its stand-in, on them.
func Kubernetes() App {
	return App{Slug: "rke2", Controller: "rke2-self-managed-controller", Family: "apps",
		Features: []prereq.Feature{prereq.Kubernetes}, Rooted: true, Whole: true,
		Smoke: []gql.ComponentInput{{Key: "server", Count: 1}, {Key: "agent", Count: 0}}}
}
