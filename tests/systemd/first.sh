# The first boot: from a machine without allotd to one that is about to boot again.
older=$(ls /payload/*.deb | grep -v next)
newer=$(ls /payload/*.deb | grep next)

# --- installing ---------------------------------------------------------------------------------------------
check "the package installs" dpkg -i "$older"
check "allotd runs" systemctl is-active allotd.service allot-pods.service allotd.socket allot-errand.socket
check "it starts at boot" systemctl is-enabled allotd.service allot-pods.service allotd.socket allot-errand.socket
check "the socket is root's and the group's" says '^660 root allot$' stat -c '%a %U %G' /run/allotd/allotd.sock
check "errands are root's alone" says '^600 root root$' stat -c '%a %U %G' /run/allotd/errand.sock
check "controllers are there, huge pages too" says 'cpu.*memory.*hugetlb.*pids' cat "$pods/cgroup.controllers"
check "status" allot status
check "nothing is amiss" says 'Problems: *none\|^Problems' allot status
check "exposure is below 4.0" systemd-analyze security --threshold=39 allotd.service
systemd-analyze security allotd.service | tail -n 1

# --- pods ---------------------------------------------------------------------------------------------------
own "$kept/own"
check "pods are admitted" allot apply -f /payload/web.yaml
for pod in web batch idle; do check "$pod runs" within 60 phase "$pod" Running; done
web=$(cgroup_of web)
check "cpu.max of web" holds "$web/cpu.max" "10000 100000"
check "memory.max of web" holds "$web/app/memory.max" 50331648
check "hugetlb of web" holds "$web/app/hugetlb.2MB.max" 0
volume=$(ls -d /var/lib/allotd/pods/*/.volumes/cache)
check "the volume in memory is mounted among the host's" within 10 holds "$volume/file" kept
check "its size" says ' 8192 ' df -k "$volume"
check "a volume is seen at its mountPath by the container alone" not test -e /mnt/other
check "no drift" no_drift
sleep 1
remember
