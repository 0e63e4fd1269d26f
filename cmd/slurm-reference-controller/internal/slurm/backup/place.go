package backup

import (
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
)

// slurmctldUp is the question within lookScript.
const slurmctldUp = daemons.SlurmctldUp

// before has what was there before the last restore.
const before = layout.StateDir + "/before"

// placeScript puts the backup $2 of the folder $1 in its place, while nothing of it runs, and has slurmctld give no
// number below $3. It unpacks beside the place, as Slurm's user, and only then moves; it keeps the old state until the
// next restore. Lines of the register that came since stay.
const placeScript = `umask 077
from=$1/$2 state=` + layout.StateDir + ` database=` + daemons.DatabaseDir + ` fresh=` + layout.StateDir + `/.restored
rm -rf "$fresh" && install -d -o slurm -g slurm -m 0700 "$fresh" || exit 1
unpack() {
    gzip -dc "$1" | setpriv --reuid=slurm --regid=slurm --clear-groups tar -C "$fresh" --no-same-owner -xpf -
}
unpack "$from/state.tar.gz" && test -s "$fresh/slurmctld/clustername" && test -s "$fresh/slurmctld/job_state" || exit 1
test ! -f "$from/accounts.tar.gz" || unpack "$from/accounts.tar.gz" || exit 1
set -- "$3"
` + layout.RaiseFirstJob + ` || exit 1
install -d -m 0700 ` + before + ` || exit 1
test ! -e $state/slurmctld || mv -T $state/slurmctld ` + before + `/slurmctld || exit 1
mv -T "$fresh/slurmctld" $state/slurmctld || exit 1
if test -d "$fresh/data"; then
    install -d -o slurm -g slurm -m 0700 $database || exit 1
    test ! -e $database/data || mv -T $database/data ` + before + `/data || exit 1
    mv -T "$fresh/data" $database/data || exit 1
fi
touch $state/people && cp -p $state/people ` + before + `/people
grep -vxFf $state/people "$from/people" > $state/people.new
cat $state/people >> $state/people.new && mv $state/people.new $state/people && chmod 0644 $state/people || exit 1
rm -rf "$fresh"`

// backScript puts back what placeScript has kept; it does nothing where that has moved nothing.
const backScript = `state=` + layout.StateDir + `
rm -rf $state/.restored
test ! -d ` + before + `/slurmctld ||
    { rm -rf $state/slurmctld && mv -T ` + before + `/slurmctld $state/slurmctld; } || exit 1
test ! -d ` + before + `/data || { rm -rf ` + daemons.DatabaseDir + `/data && ` +
	`mv -T ` + before + `/data ` + daemons.DatabaseDir + `/data; } || exit 1
exit 0`
