set -e
group=$1
shift
mount --make-rshared /
for dir in kernel vm; do
	mount --bind /proc/sys/$dir /proc/sys/$dir
	mount -o remount,bind,ro /proc/sys/$dir
done
for set in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	mkdir -p /run/settings/${set%/*}
	echo ${set#*=} > /run/settings/${set%=*}
	mount --bind /run/settings/${set%=*} /proc/sys/${set%=*}
done
[ -e /dev/kmsg ] || ln -s null /dev/kmsg
list="cpu cpuacct cpuset memory devices freezer blkio pids"
for one in $list; do
	at=/run/hierarchies/$one
	mkdir -p $at
	mount -t cgroup -o $one cgroup $at
	mkdir -p $at$group
	if [ $one = cpuset ]; then
		path=""
		for part in $(echo $group | tr / " "); do
			for file in cpuset.cpus cpuset.mems; do cat $at$path/$file > $at$path/$part/$file; done
			path=$path/$part
		done
	fi
	echo $$ > $at$group/cgroup.procs
	umount $at
done
exec unshare -C sh -c '
	set -e
	mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
	for one in '"$list"'; do
		mkdir /sys/fs/cgroup/$one
		mount -t cgroup -o $one cgroup /sys/fs/cgroup/$one
	done
	exec "$@"' sh "$@"
