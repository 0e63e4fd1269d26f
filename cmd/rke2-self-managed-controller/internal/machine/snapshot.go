package machine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/release"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	databasePath = DataPath + "/server/db"
	// SnapshotsPath is where a server keeps what RKE2 saves of etcd.
	SnapshotsPath = databasePath + "/snapshots"
	// SaveTime bounds the saving of a snapshot.
	SaveTime = 5 * time.Minute
	// ResetTime bounds what etcd takes to become one again.
	ResetTime = 10 * time.Minute
	// before begins the names of snapshots from before an upgrade; the release that ran follows.
	before = "pre-"
)

// Snapshot is one file of a server.
type Snapshot struct {
	// Server has it, and Name is that of its file.
	Server adapter.Member
	Name   string
	// Bytes is how large it is, and At when it was taken.
	Bytes int64
	At    time.Time
}

// ListSnapshots prints a line for each snapshot of a server, oldest first, at most 200.
func ListSnapshots() adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(`cd "$R` + SnapshotsPath + `" 2> /dev/null || exit 0; ` +
		`find . -maxdepth 1 -type f -printf "%T@ %s %f\\n" | sort -n | tail -n 200`)}
}

// SnapshotsOf reads what ListSnapshots prints.
func SnapshotsOf(on adapter.Member, text string) (list []Snapshot) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		seconds, err := strconv.ParseFloat(fields[0], 64)
		size, sizeErr := strconv.ParseInt(fields[1], 10, 64)
		if err == nil && sizeErr == nil {
			list = append(list, Snapshot{Server: on, Name: fields[2], Bytes: size,
				At: time.Unix(int64(seconds), 0).UTC()})
		}
	}
	return list
}

// Save makes a snapshot on a server. Its file's name begins with the given one.
func Save(config Config, name string) adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(config.found()+`RKE2_CONFIG_FILE="$R`+ConfigPath+
		`" exec rke2 etcd-snapshot save --data-dir "$R`+DataPath+`" --name "$1"`, name)}
}

// Prune deletes all but the five newest snapshots that were taken before upgrades.
func Prune() adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(`cd "$R` + SnapshotsPath + `" && ls -1t | grep "^` + before +
		`" | tail -n +6 | while read -r old; do rm -f "./$old"; done`)}
}

// EtcdKept is what Reset exits with where etcd is what it was.
const EtcdKept = 75

// Reset has etcd of a stopped server go back to a snapshot, with that server as its only member. RKE2 refuses it for as
// long as the server's config names another to join, which one that has etcd's files needs no more. It leaves a flag
// once etcd was reset, until it starts; without that, what it has moved aside is put back.
func Reset(member adapter.Member, config Config, name string) adapter.RunCommand {
	kept := fmt.Sprint("exit ", EtcdKept)
	before := `cd "$R` + databasePath + `" && sed -i "/^server: /d" "$R` + ConfigPath + `" && rm -f reset-flag || ` +
		kept + `; had=" $(echo etcd-old-*) "; (`
	after := `) && exit; test ! -e reset-flag || exit 0; for old in etcd-old-*; do case "$had" in *" $old "*) ;; ` +
		`*) rm -rf etcd && mv "$old" etcd || exit ;; esac; done; ` + kept
	return adapter.RunCommand{Command: Shell(before+program(member, config)+
		` --cluster-reset --cluster-reset-restore-path "$R`+SnapshotsPath+`/$1"`+after, name)}
}

// ForgetEtcd deletes what etcd of a stopped server holds, so that it joins as a new member; snapshots stay.
func ForgetEtcd() adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(`rm -rf "$R` + EtcdPath + `"`)}
}

// UpgradeName is how a snapshot before an upgrade from a release is called.
func UpgradeName(from string) string { return before + strings.ReplaceAll(from, "+", "-") + "-" }

// Newest returns the newest snapshot whose name begins so.
func Newest(list []Snapshot, prefix string) (found Snapshot, ok bool) {
	for _, one := range list {
		if strings.HasPrefix(one.Name, prefix) && (!ok || one.At.After(found.At)) {
			found, ok = one, true
		}
	}
	return found, ok
}

// NoSnapshot is the failure of a rollback that has nothing to restore.
func NoSnapshot(of release.Release) error {
	return adapter.Fail("NO_SNAPSHOT", adapter.OwnerUser, false,
		"no server has a snapshot from before the upgrade from %s, which cannot read a newer etcd: "+
			"restore a snapshot of your own by the action snapshot.restore, or keep the newer release", of)
}

// View is the snapshot as actions answer it.
func (s Snapshot) View() map[string]any {
	return map[string]any{"name": s.Name, "node": Name(s.Server), "bytes": s.Bytes,
		"savedAt": s.At.Format(time.RFC3339)}
}
