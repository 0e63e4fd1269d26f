// Package cloudinit applies user data in a member by the cloud-init that is installed there, as a first boot would. It
// runs in the member, as a part of the agent's program that the member's init starts like any command: so it is timed,
// canceled and found again as a command is.
//
//	standard input    Request, with the user data, which is nowhere else but in cloud-init's own files (0600)
//	standard output   what the stages print, as /var/log/cloud-init-output.log grows
//	standard error    Result, one JSON document and nothing else
//
// The stages' exit codes say nothing; what counts is what cloud-init writes to result.json. The datasource is NoCloud
// with a seed directory, so that the network is not used. The modules are those that make sense in a member: no disks,
// no bootloader, no network configuration, no reboot. Host names are set in a UTS namespace of the run's own, which
// what it leaves running keeps; the node keeps its name.
package cloudinit
