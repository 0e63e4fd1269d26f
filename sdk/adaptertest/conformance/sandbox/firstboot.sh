# A first boot of the member. $1 is its metadata, $2 the configuration; the user data comes by standard input.
set -e
seed=/var/lib/cloud/seed/nocloud
mkdir -p $seed /etc/cloud/cloud.cfg.d
umask 077
cat > $seed/user-data
printf '%s\n' "$1" > $seed/meta-data
printf '%s' "$2" > /etc/cloud/cloud.cfg.d/99_zz_member.cfg
rm -rf /run/cloud-init
umask 022
{
    cloud-init init --local || :
    cloud-init init || :
    cloud-init modules --mode=config || :
    cloud-init modules --mode=final || :
} >&2 2>&1
cat /run/cloud-init/result.json
