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
	// that program prints the manifest and writes its further artifacts; else the controller prints it
	Prints   bool
	Family   string
	Features []prereq.Feature
	Rooted   bool                 // needs nodes with namespaces
	Whole    bool                 // needs whole nodes: its members are plain processes there
	Smoke    []gql.ComponentInput // what a smoke launch asks for; nil for the manifest's defaults
	// Program is the path of the controller's program; empty for the one in Bin.
	Program string
	// System makes it one that the operator runs for the platform; nil for an app that tenants launch.
	System *System
}

// System is what a system app says of itself. Its controller, and so the rest of its manifest, are a reference app's.
type System struct{ Name, Summary, Docs string }

// Apps are the reference apps of this repository.
func Apps() []App {
	return []App{
		{Slug: "hello-cluster", Controller: "hello-cluster-controller", Family: "apps"},
		{Slug: "slurm", Controller: "slurm-reference-controller", Family: "scheduler",
			Features: []prereq.Feature{prereq.Slurm}, Rooted: true},
		{Slug: "web-notebook", Controller: "oci-launch-controller", Image: "web-notebook", Family: "apps",
			Features: []prereq.Feature{prereq.CloudInit, prereq.Containers}, Rooted: true},
		{Slug: "model-server", Controller: "oci-launch-controller", Image: "model-server", Prints: true, Family: "apps",
			Features: []prereq.Feature{prereq.CloudInit, prereq.Containers}, Rooted: true},
	}
}

// SystemApps are the apps that the operator runs for the platform. Their controllers and images are of Apps.
func SystemApps() []App {
	return []App{{Slug: "staff-notebook", Controller: "oci-launch-controller", Image: "web-notebook", Family: "apps",
		Rooted: true, System: &System{
			Name:    "Staff notebook",
			Summary: "The notebook of the platform's own staff, which the operator runs for the platform.",
			Docs: "# Staff notebook\n\nA system app: it runs in the platform's own tenant, no tenant sees it, and " +
				"no one is billed for it. It is the image of the web notebook, and behaves like it.",
		}}}
}

// Kubernetes is the reference app that needs whole nodes with RKE2, or its stand-in, on them.
func Kubernetes() App {
	return App{Slug: "rke2", Controller: "rke2-self-managed-controller", Family: "apps",
		Features: []prereq.Feature{prereq.Kubernetes}, Rooted: true, Whole: true,
		Smoke: []gql.ComponentInput{{Key: "server", Count: 1}, {Key: "agent", Count: 0}}}
}
