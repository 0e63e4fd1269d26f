// Package people makes the people who use a cluster known in it: an account on every member, with a home of their own,
// and for accounting an association with their project. It keeps the register of those that it met on the controller,
// beside the cluster's state, so that members that come later get all of them.
package people

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// HomeDir is the folder of all homes. It may be a volume that the members share.
	HomeDir = "/home"
	// registerFile has a line for each account: name, id, id of the group, and the platform's id of its owner. It lies
	// beside what slurmctld saves, so that it is wherever that is.
	registerFile = layout.StateDir + "/people"
)

// Person is a requester's account in the cluster: of a person or of a service account of the platform.
type Person struct {
	Name     string
	UID, GID int
	// ID is the platform's, which certificates name.
	ID string
	// Account is what Slurm charges their jobs to: the id of the project that they ask from.
	Account string
}

// name is how the platform names accounts; nothing in it means anything to a shell or to the files of accounts.
var name = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,30}$`)

// account is an id of the platform, which is also a name of an account for Slurm.
var account = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,63}$`)

// Of returns the requester of an action; nil where the requester has no account, as on a platform or with a manifest of
// before identities, and for requesters that are neither a person nor a service account.
func Of(call *adapter.Call) (*Person, error) {
	given := call.Requester.Posix
	if given == nil {
		return nil, nil
	}
	p := &Person{Name: given.Name, UID: given.UID, GID: given.GID, ID: call.Requester.ID,
		Account: cmp.Or(call.Requester.ProjectID, call.Instance.ProjectID)}
	for _, id := range []int{p.UID, p.GID} {
		if id < layout.FirstPerson || id > layout.LastPerson {
			return nil, adapter.Reject(adapter.CodeInvalid, "requester.posix", "%d is not an id of an account", id)
		}
	}
	if !name.MatchString(p.Name) || !account.MatchString(p.Account) || !account.MatchString(p.ID) {
		return nil, adapter.Reject(adapter.CodeInvalid, "requester", "%q, who is %q of %q, cannot have an account",
			p.Name, p.ID, p.Account)
	}
	return p, nil
}

// Home returns the person's home.
func (p Person) Home() string { return HomeDir + "/" + p.Name }

// tagLength is how much of an instance's id distinguishes its files from another's.
const tagLength = 6

// OutputName begins the name of what a job of the platform's writes in its owner's home. Homes may outlast a cluster,
// and several may have the same ones: the next job with this number is not to write there.
func OutputName(instance, job string) string {
	return "slurm-" + instance[max(0, len(instance)-tagLength):] + "-" + job
}

// NativeName begins the name of what a job from within the cluster writes, unless its script says otherwise.
func NativeName(job string) string { return "slurm-" + job }

// line is the person in the register.
func (p Person) line() string { return fmt.Sprintf("%s %d %d %s\n", p.Name, p.UID, p.GID, p.ID) }

// As returns a command that runs as the person, from a member's root. The account need not be known to the member.
func (p Person) As(command ...string) []string {
	id, group := strconv.Itoa(p.UID), strconv.Itoa(p.GID)
	return append([]string{"setpriv", "--reuid=" + id, "--regid=" + group, "--clear-groups", "env", "HOME=" + p.Home(),
		"USER=" + p.Name, "LOGNAME=" + p.Name, "SHELL=/bin/sh"}, command...)
}

// accountsScript creates an account, and a home if needed, for each line that it reads, and on a login lets only this
// person's certificate open the account. A repeat does no harm. A home is filled beside its place and then moved:
// another member may read the same volume. It exits with 6 where a name or an id is another account's in this member.
// The whole text counts with a task's key: with another the platform refuses the repeat of an earlier build's action.
const accountsScript = `umask 022
exec 9> /run/lock-people && flock 9 && mkdir -p ` + HomeDir + ` || exit 1
shell=$(command -v bash || echo /bin/sh)
add() {
    case $accounts in
    *"
$1:$2
"*) return ;;
    *"
$1:"* | *":$2
"*) echo "the name $1 or the id $2 is somebody else's here" >&2; exit 6 ;;
    esac
    grep -q "^$1:" /etc/group || echo "$1:x:$3:" >> /etc/group
    grep -q "^$1:" /etc/shadow || echo "$1:*:19000:0:99999:7:::" >> /etc/shadow
    echo "$1:x:$2:$3:$1:` + HomeDir + `/$1:$shell" >> /etc/passwd
}
settle() {
    test ! -e "` + HomeDir + `/$1" || return 0
    new=$(mktemp -d "` + HomeDir + `/.new.XXXXXX") && { test ! -d /etc/skel || cp -r /etc/skel/. "$new"; } &&
        chown -R "$2:$3" "$new" && chmod 0700 "$new" && mv -T "$new" "` + HomeDir + `/$1" || rm -rf "$new"
    test -e "` + HomeDir + `/$1"
}
accounts="
$(cut -d : -f 1,3 /etc/passwd)
"
while read -r name id group person; do
    add "$name" "$id" "$group"
    settle "$name" "$id" "$group" || exit 1
    test ! -d ` + layout.PrincipalsDir + ` || test -s "` + layout.PrincipalsDir + `/$name" ||
        sed "s/^/$person@/" ` + layout.EndpointFile + ` > "` + layout.PrincipalsDir + `/$name" || exit 1
done
`

// recordScript puts the person of line $1 into the register, once. The register is replaced whole, or not at all.
const recordScript = `exec 8> /run/lock-register && flock 8 || exit 1
grep -qxF "$1" ` + registerFile + ` 2> /dev/null && exit 0
{ cat ` + registerFile + ` 2> /dev/null; echo "$1"; } > ` + registerFile + `.new && sync ` + registerFile + `.new &&
    mv ` + registerFile + `.new ` + registerFile

// chargeScript makes the account $2 and its association with the user $1, and waits until slurmctld knows it, where
// the cluster accounts for its jobs.
const chargeScript = `grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + ` || exit 0
cluster=$(sed -n 's/^ClusterName=//p' ` + layout.SlurmConfPath + `)
exec 7> /run/lock-associations && flock 7 || exit 1
known() {
    timeout 20 scontrol -o show assoc_mgr flags=assoc users="$1" accounts="$2" | grep -q "UserName=$1("
}
known "$1" "$2" && exit 0
has() { timeout 20 sacctmgr -nP list assoc where cluster="$cluster" "$@" format=account | grep -q .; }
has account="$2" || timeout 20 sacctmgr -i add account "$2" cluster="$cluster" > /dev/null || exit 1
has account="$2" user="$1" || timeout 20 sacctmgr -i add user "$1" account="$2" cluster="$cluster" > /dev/null || exit 1
for i in $(seq 50); do
    known "$1" "$2" && exit 0
    sleep 0.2
done
echo "slurmctld does not know that $1 belongs to $2" >&2
exit 1`

// admitScript does all that the controller does for the person of line $1, who is $2 and charged to $3.
const admitScript = "(\n" + accountsScript + ") && (\n" + recordScript + "\n) && (\nset -- \"$2\" \"$3\"\n" +
	chargeScript +
	"\n)"

// ReadRegister prints the register, packed: a node keeps 64 KiB of output.
const ReadRegister = `test ! -s ` + registerFile + ` || gzip -c ` + registerFile + ` | base64 -w 0`

// MakeAll makes the accounts of the whole register on the controller itself.
const MakeAll = `test ! -s ` + registerFile + ` || { ` + accountsScript + `} < ` + registerFile

// MakePacked returns the task that makes the accounts of a register that [ReadRegister] printed.
func MakePacked(packed string) adapter.RunCommand {
	return adapter.RunCommand{Stdin: packed, Command: []string{"sh", "-c",
		"base64 -d | gzip -d | { " + accountsScript + "}"}}
}

// task makes the person's account on a member.
func (p Person) task() adapter.RunCommand {
	return adapter.RunCommand{Stdin: p.line(), Command: []string{"sh", "-c", accountsScript}}
}

// admit makes the person known on the controller: the account, the line in the register, the association. The order
// matters: Slurm resolves the users of its associations, and a member that joins reads the register.
func (p Person) admit() adapter.RunCommand {
	return adapter.RunCommand{Stdin: p.line(), Command: []string{"sh", "-c", admitScript, "admit",
		strings.TrimSpace(p.line()), p.Name, p.Account}}
}
