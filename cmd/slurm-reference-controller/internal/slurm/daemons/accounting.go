package daemons

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// JobAccount is the account that submitted jobs are charged to.
	JobAccount = "jobs"
	// DatabaseDir has the database in its folder data, on the controller.
	DatabaseDir = layout.StateDir + "/database"
	// databaseSocket and databaseSetup are paths in the controller's sandbox. The socket is the client library's
	// default.
	databaseSocket = "/run/mysqld/mysqld.sock"
	databaseSetup  = "/etc/slurm/database.sql"
)

// installDatabase creates the data directory, whole or not at all: an installation that was cut
// short leaves only the directory beside it.
const installDatabase = `install -d -o slurm -g slurm -m 0700 ` + DatabaseDir + ` /run/mysqld /run/slurmdbd || exit 1
test -d ` + DatabaseDir + `/data && exit 0
rm -rf ` + DatabaseDir + `/new
mariadb-install-db --no-defaults --user=slurm --datadir=` + DatabaseDir + `/new ` +
	`--auth-root-authentication-method=normal --skip-test-db > /dev/null || exit 1
mv ` + DatabaseDir + `/new ` + DatabaseDir + `/data`

// mariadbd returns the task of the database server: no network, small buffers, durable to the last
// second.
func mariadbd() adapter.StartProcess {
	task := daemon(
		"mariadbd", "slurm", "mariadbd", "--no-defaults", "--datadir="+DatabaseDir+"/data", "--socket="+databaseSocket,
		"--pid-file=/run/mysqld/mariadbd.pid", "--skip-networking", "--innodb-buffer-pool-size=32M",
		"--innodb-log-file-size=16M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=2",
		"--performance-schema=OFF", "--key-buffer-size=1M", "--aria-pagecache-buffer-size=1M", "--max-connections=32",
	)
	task.StopTimeoutSeconds = 30
	return task
}

const databaseReady = `mariadb --no-defaults -uroot --socket=` + databaseSocket + ` -e "select 1" > /dev/null`

// setUpDatabase runs the statements that came sealed, and deletes them. A repeat finds no file and
// does nothing.
const setUpDatabase = `test ! -f ` + databaseSetup + ` || { mariadb --no-defaults -uroot --socket=` +
	databaseSocket + ` < ` + databaseSetup + ` && rm -f ` + databaseSetup + `; }`

// OwnDatabase gives a database the password that slurmdbd of this member has: it may have come from another instance.
// The password stays in the member.
func OwnDatabase() Step {
	return Step{"database-own", Shell(`pass=$(sed -n "s/^StoragePass=//p" /etc/slurm/slurmdbd.conf)
test -n "$pass" && printf "alter user slurm@localhost identified by '%s';\n" "$pass" |
    mariadb --no-defaults -uroot --socket=` + databaseSocket)}
}

// SlurmdbdReady succeeds when slurmdbd answers from its database.
const SlurmdbdReady = `timeout 10 sacctmgr -n -i list cluster > /dev/null 2>&1`

// registered returns a script that succeeds when slurmdbd knows where the cluster's slurmctld is.
func registered(cluster string) string {
	return fmt.Sprintf(`test -n "$(timeout 10 sacctmgr -nP list cluster where cluster=%s format=controlhost)"`, cluster)
}

// StartAccounting starts the database and slurmdbd and creates the associations. The names of the
// steps end with round.
func (w Work) StartAccounting(
	ctx context.Context, controller adapter.Member, cluster layout.Cluster, round string,
) error {
	w.Progress("starting database", 25, "starting the accounting database")
	if err := w.startDatabase(ctx, controller, cluster, round); err != nil {
		return w.WithLog(ctx, controller, "mariadbd", err)
	}
	w.Progress("starting accounting", 35, "starting slurmdbd and creating its associations")
	task := adapter.RunCommand{
		Command: []string{"sh", "-c", associateScript, "associate", cluster.ClusterName, JobAccount, layout.JobUser},
	}
	err := w.Steps(ctx, controller,
		Step{"slurmdbd" + round, daemon("slurmdbd", "slurm", "slurmdbd", "-D")},
		Step{"slurmdbd-ready" + round, Probe(60*time.Second, SlurmdbdReady)},
		Step{"associations" + round, task},
	)
	if err != nil {
		return w.WithLog(ctx, controller, "slurmdbd", err)
	}
	return nil
}

// startDatabase installs the database if needed, starts it and sets up its user. The password reaches
// the node only in sealed files.
func (w Work) startDatabase(
	ctx context.Context,
	controller adapter.Member,
	cluster layout.Cluster,
	round string,
) error {
	password, err := w.Keys.password(w.Instance().ID)
	if err != nil {
		return err
	}
	conf, err := layout.RenderSlurmdbdConf(cluster, password)
	if err != nil {
		return err
	}
	sealedConf, err := w.seal(controller, conf)
	if err != nil {
		return err
	}
	sealedSetup, err := w.seal(controller, fmt.Sprintf("create database if not exists slurm_acct_db;\n"+
		"create user if not exists slurm@localhost;\nalter user slurm@localhost identified by '%s';\n"+
		"grant all on slurm_acct_db.* to slurm@localhost;\n", password))
	if err != nil {
		return err
	}
	return w.Steps(
		ctx,
		controller,
		Step{"database-install" + round, Shell(installDatabase)},
		Step{"mariadbd" + round, mariadbd()},
		Step{"database-ready" + round, Probe(60*time.Second, databaseReady)},
		Step{"database-setup" + round, adapter.WriteFile{Path: databaseSetup, Mode: "0600", Sealed: sealedSetup}},
		Step{"database-set-up" + round, Shell(setUpDatabase)},
		Step{
			"slurmdbd-conf" + round,
			adapter.WriteFile{Path: "/etc/slurm/slurmdbd.conf", Mode: "0600", Owner: "slurm:slurm", Sealed: sealedConf},
		},
	)
}

// associateScript creates a cluster, an account and a user's association if they do not exist. It
// checks first that the user exists: slurmdbd accepts names that it cannot resolve, and slurmctld
// would then refuse their jobs. $1 is the cluster, $2 the account, $3 the user.
const associateScript = `getent passwd "$3" > /dev/null || { echo "there is no user $3" >&2; exit 1; }
has() { timeout 20 sacctmgr -nP list "$@" | grep -q .; }
has cluster where cluster="$1" format=cluster || timeout 20 sacctmgr -i add cluster "$1" || exit 1
has assoc where cluster="$1" account="$2" format=account || ` +
	`timeout 20 sacctmgr -i add account "$2" cluster="$1" || exit 1
has assoc where cluster="$1" account="$2" user="$3" format=user || ` +
	`timeout 20 sacctmgr -i add user "$3" account="$2" cluster="$1" || exit 1
has assoc where cluster="$1" account="$2" user="$3" format=user`

// seal encrypts a text for the member's node and this instance.
func (w Work) seal(member adapter.Member, text string) (string, error) {
	sealed, err := adapter.Seal(member.Node.SealingKey, w.Instance().ID, []byte(text))
	if err != nil {
		return "", adapter.Fail("SEALING_KEY_INVALID", adapter.OwnerPlatform, false, "node %s: %v",
			member.Node.Name, err)
	}
	return sealed, nil
}
