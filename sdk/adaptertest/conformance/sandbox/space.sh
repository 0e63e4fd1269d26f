# The first process of a member: an overlay over the machine's root, private /run and /tmp, a /scratch on no overlay, and then
# nothing but reaping. $1 is the member's directory; what follows are volumes, each as a folder of the
# machine, where the member has it, and rw or ro.
set -e
mount --make-rprivate /
mkdir -p "$1/fs"
mount -t tmpfs none "$1/fs"
mkdir -p "$1/fs/upper" "$1/fs/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/fs/upper,workdir=$1/fs/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mkdir -p scratch "$1/fs/scratch"
mount --bind "$1/fs/scratch" scratch
mount -t tmpfs -o mode=755,size=1m none sys/fs/cgroup
for dir in run tmp; do mount -t tmpfs -o mode=1777 none $dir; done
mkdir tmp/old
mkdir run/sandbox-upper # what the member writes, for those who look for residue
mount --bind "$1/fs/upper" run/sandbox-upper
while [ $# -gt 1 ]; do
	mkdir -p ".$3"
	mount --bind "$2" ".$3"
	mount -o "remount,bind,nosuid,nodev,$4" ".$3"
	shift 3
done
pivot_root . tmp/old
cd /
umount -l /tmp/old
rmdir /tmp/old
: > /run/sandbox-ready
set +e
while :; do
    sleep 1000 &
    wait
done
