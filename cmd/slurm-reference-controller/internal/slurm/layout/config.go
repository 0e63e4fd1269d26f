package layout

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The component keys of the app.
const (
	ComponentController = "controller"
	ComponentWorker     = "worker"
	ComponentLogin      = "login"
)

const (
	// JobUser runs the jobs of submitters without an account: a member's root is not for its tenants' scripts.
	JobUser = "nobody"
	// JobDir is where submitted jobs run and write, on every member.
	JobDir = "/var/lib/slurm/jobs"
	// PrincipalsDir has, on a login, a file for each account with what its person's certificate names.
	PrincipalsDir = "/etc/ssh/principals"
	// EndpointFile has, on a login, what everybody's certificate names.
	EndpointFile = "/etc/ssh/endpoint"
	// ConfServerName is the variable by which Slurm's commands find slurmctld without a slurm.conf.
	ConfServerName = "SLURM_CONF_SERVER"
	// FirstPerson and LastPerson are the ids of the accounts that the platform gives people.
	FirstPerson, LastPerson = 1_000, 59_999
)

// Config is an instance's configuration, valid against the manifest's schema.
type Config struct {
	// ClusterName is Slurm's ClusterName. It never changes: Slurm's saved state is bound to it.
	ClusterName string `json:"clusterName"`
	// PartitionName is the name of the only partition.
	PartitionName string `json:"partitionName"`
	// CPUsPerNode and MemoryMiBPerNode replace a worker's share of its node; 0 means its share.
	CPUsPerNode      int `json:"cpusPerNode"`
	MemoryMiBPerNode int `json:"memoryMiBPerNode"`
	// MaxJobMinutes bounds a job's time; 0 means no bound.
	MaxJobMinutes int `json:"maxJobMinutes"`
	// BackfillSeconds is the pause between two rounds of the backfill scheduler; 0 means 1.
	BackfillSeconds int `json:"backfillSeconds"`
	// BatchDelaySeconds is how long a batch job waits at least before it is considered.
	BatchDelaySeconds int `json:"batchDelaySeconds"`
	// Accounting switches accounting on or off; nil means on.
	Accounting *Accounting `json:"accounting"`
}

// Accounting states whether a cluster has slurmdbd and its database.
type Accounting struct {
	// Enabled is whether it has them; nil means yes.
	Enabled *bool `json:"enabled"`
}

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	c.ClusterName = cmp.Or(c.ClusterName, "cluster")
	c.PartitionName = cmp.Or(c.PartitionName, "main")
	c.BackfillSeconds = cmp.Or(c.BackfillSeconds, 1)
	return c
}

// Accounted reports whether the cluster accounts for its jobs.
func (c Config) Accounted() bool {
	return c.Accounting == nil || c.Accounting.Enabled == nil || *c.Accounting.Enabled
}

// MaxTime returns the partition's time limit as slurm.conf spells it.
func (c Config) MaxTime() string {
	if c.MaxJobMinutes > 0 {
		return strconv.Itoa(c.MaxJobMinutes)
	}
	return "INFINITE"
}

// Versions returns the configurations that an upgrade or rollback goes from and to, with defaults
// filled in.
func Versions(change json.RawMessage) (from, to Config, err error) {
	var both adapter.VersionChange
	if len(change) > 0 {
		if err := json.Unmarshal(change, &both); err != nil {
			return from, to, adapter.Reject(adapter.CodeInvalid, "change", "the change cannot be read: %v", err)
		}
	}
	if from, err = readConfig(both.From.Config); err != nil {
		return from, to, err
	}
	to, err = readConfig(both.To.Config)
	return from, to, err
}

func readConfig(raw json.RawMessage) (Config, error) {
	var config Config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &config); err != nil {
			return config, adapter.Reject(adapter.CodeConfigInvalid, "change",
				"a configuration cannot be read: %v", err)
		}
	}
	return config.WithDefaults(), nil
}
