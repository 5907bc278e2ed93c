# The tests of the package under systemd: run by scripts/systemd-vm as root in the machine. Each step is followed by a
# look at all values and processes of the pods: they are as before, or it is told why not.
set -u
export SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat DEBIAN_FRONTEND=noninteractive LC_ALL=C
. /payload/lib.sh
if [ "$BOOT" = 1 ]; then
    . /payload/first.sh
    finish 194
fi
. /payload/second.sh
finish 0
