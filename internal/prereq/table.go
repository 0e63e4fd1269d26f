package prereq

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuaas/app-platform/internal/postgres"
)

// Feature is something the platform can do once the machine has certain programs.
type Feature string

// The features.
const (
	Postgres Feature = "postgres" // the embedded database server
	Lab      Feature = "lab"      // local nodes in namespaces
	Slurm    Feature = "slurm"    // real Slurm clusters on local nodes
	Browser  Feature = "browser"  // the console driven in a real browser
	// CloudInit is first boots of members; 3 MB in 22 packages, most of them Python's.
	CloudInit Feature = "cloud-init"
	// Containers is OCI images run in members; some 100 MB on the disk, podman and its network plugins.
	Containers Feature = "containers"
	// Python is what the adapter in Python runs on: Debian's interpreter with NaCl and JSON Schema, and its app, Redis.
	Python Feature = "python"
	// Kubernetes is what the stand-in of RKE2 on local nodes starts containers with.
	Kubernetes Feature = "kubernetes"
)

// need is one row of the table: a thing to look for, and what brings it.
type need struct {
	what     string   // for people
	packages []string // Debian packages
	probe    func(ctx context.Context) bool
}

// table lists what each feature needs. A package is listed where its program is probed, so that a machine that has most
// of a feature installs only the rest.
var table = map[Feature][]need{
	Postgres: {
		{"PostgreSQL server 15 or newer", []string{"postgresql"}, hasPostgres},
	},
	Lab: {
		{"ip", []string{"iproute2"}, program("ip")},
		{"mount", []string{"mount"}, program("mount")},
		{"nsenter and setpriv", []string{"util-linux"}, program("nsenter", "setpriv")},
		// Members are containers: crun runs them, and where only runc is installed that does.
		{"an OCI runtime", []string{"crun"}, anyProgram("crun", "runc")},
		// people log in to members by them
		{"ssh, scp and sftp", []string{"openssh-client"}, program("ssh", "scp", "sftp")},
	},
	Slurm: {
		{"slurmctld", []string{"slurmctld"}, program("slurmctld")},
		{"slurmd", []string{"slurmd"}, program("slurmd")},
		{"sinfo and srun", []string{"slurm-client"}, program("sinfo", "srun", "sbatch", "scontrol")},
		{"munged", []string{"munge"}, program("munged")},
		{"sshd", []string{"openssh-server"}, program("sshd")}, // of a cluster's logins
		// The core packages bring no service and no data: each cluster has its database in its own sandbox.
		{"mariadbd", []string{"mariadb-server-core"}, program("mariadbd", "mariadb-install-db")},
		{"mariadb", []string{"mariadb-client-core"}, program("mariadb")},
		{"slurmdbd", []string{"slurmdbd"}, program("slurmdbd")},
		{"slurmdbd's storage plugin", []string{"slurm-wlm-mysql-plugin"},
			file("/usr/lib/*/slurm*/accounting_storage_mysql.so")},
	},
	CloudInit: {
		{"cloud-init", []string{"cloud-init"}, program("cloud-init")},
	},
	Containers: {
		{"podman", []string{"podman"}, program("podman")},
		{"crun", []string{"crun"}, program("crun")},
		{"netavark", []string{"netavark"}, file("/usr/lib/podman/netavark")},
	},
	Python: {
		{"Python", []string{"python3"}, file("/usr/bin/python3")},
		{"NaCl for Python", []string{"python3-nacl"}, file("/usr/lib/python3/dist-packages/nacl/__init__.py")},
		{"JSON Schema for Python", []string{"python3-jsonschema"},
			file("/usr/lib/python3/dist-packages/jsonschema/__init__.py")},
		{"WebSocket for Python", []string{"python3-websocket"},
			file("/usr/lib/python3/dist-packages/websocket/__init__.py")},
		{"redis-server", []string{"redis-server"}, program("redis-server", "redis-cli")},
	},
	Kubernetes: {
		{"runc", []string{"runc"}, program("runc")},
	},
	Browser: {
		{"Chromium", []string{"chromium"}, anyProgram("chromium", "chromium-browser", "google-chrome",
			"google-chrome-stable")},
		{"fonts", []string{"fonts-dejavu-core", "fonts-liberation"}, file("/usr/share/fonts/truetype/*/*.ttf")},
	},
}

func hasPostgres(ctx context.Context) bool {
	_, err := postgres.Find(ctx)
	return err == nil
}

// program finds every one of names on PATH or in the administrators' folders, which a plain user's PATH often lacks.
func program(names ...string) func(context.Context) bool {
	return func(context.Context) bool {
		for _, name := range names {
			if !found(name) {
				return false
			}
		}
		return true
	}
}

func anyProgram(names ...string) func(context.Context) bool {
	return func(context.Context) bool {
		for _, name := range names {
			if found(name) {
				return true
			}
		}
		return false
	}
}

func found(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

func file(pattern string) func(context.Context) bool {
	return func(context.Context) bool {
		hits, err := filepath.Glob(pattern)
		return err == nil && len(hits) > 0
	}
}
