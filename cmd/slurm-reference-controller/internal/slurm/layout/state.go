package layout

import (
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// StateDir has what a cluster must not lose: what slurmctld saves, the accounts' database, the register of people
	// and a copy of its record. On a controller with the slot SlotState it is a volume, and outlasts the member.
	StateDir = "/var/lib/slurm"
	// SlotState is the manifest's slot for the volume of the state on the controller.
	SlotState = "state"
	// SlotHome is the manifest's slot for the volume of everybody's homes.
	SlotHome = "home"
	// SlotBackup is the manifest's slot for the volume of backups on the controller.
	SlotBackup = "backup"
	// KeptConfPath is the copy of the record.
	KeptConfPath = StateDir + "/slurm.conf"
	// ControllerName is the name of a controller that may move: each member has its address in /etc/hosts. Every
	// program, a job's daemon too, resolves it again for each message, and so finds a controller that has moved.
	ControllerName = "slurm-controller"
)

// HasVolume reports whether a volume is bound to a slot of the member.
func HasVolume(member adapter.Member, slot string) bool {
	return slices.ContainsFunc(member.Volumes, func(v adapter.MemberVolume) bool { return v.Slot == slot })
}

// RaiseFirstJob has the record say that slurmctld gives no number below $1, on the line of [RenderSlurmConf].
const RaiseFirstJob = `sed -e "/^FirstJobId=/d" -e "/^SlurmctldParameters=/a FirstJobId=$1" ` + SlurmConfPath +
	` > ` + SlurmConfPath + `.raised && chmod 0644 ` + SlurmConfPath + `.raised && mv -f ` + SlurmConfPath +
	`.raised ` + SlurmConfPath + ` && ` + KeepConf

// KeepConf copies the record to where it outlasts the member.
const KeepConf = `cp -p ` + SlurmConfPath + ` ` + KeptConfPath + `.new && mv -f ` + KeptConfPath + `.new ` +
	KeptConfPath

// BringConf gives a controller without a record the kept copy; it fails where no copy exists.
const BringConf = `test -s ` + SlurmConfPath + ` ||
    { test -s ` +
	KeptConfPath + ` && install -d -m 0755 /etc/slurm && cp -p ` + KeptConfPath + ` ` + SlurmConfPath + `; }`
