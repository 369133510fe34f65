#!/usr/bin/env bash
# check.sh DIRECTORY: installs the packages of DIRECTORY in a new Debian 12 tree that is booted with
# systemd (check_machine.sh), goes through the first hour (check_hour.sh), upgrades in the middle of a
# run (check_upgrade.sh), restores vergerd (check_restore.sh), removes and purges. As root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=$(realpath "$1")
transcript=$packages/first-hour.txt
[ "$(id -u)" = 0 ] || { echo "packaging: run this as root: it boots a tree of its own" >&2; exit 1; }

work=$(mktemp -d)
root=$work/debian
step() { printf 'packaging: %s\n' "$*" >&2; }
fail() { step "FAILED: $*"; exit 1; }
for part in machine cluster hour upgrade restore; do
  # shellcheck source=/dev/null
  . "packaging/check_$part.sh"
done
finish() {
  power_off
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# quietly COMMAND...
quietly() { "$@" >"$work/last" 2>&1 || { cat "$work/last" >&2; fail "$*"; }; }
install_packages() {
  quietly inside sh -c "apt-get install -y --no-install-recommends ${1:-} /packages/*.deb"
}

step "making a Debian 12 tree ..."
# With the lists of packages, for the dependencies.
mmdebstrap --quiet --variant=apt --mode=root --skip=cleanup/apt/lists \
  --include=systemd,systemd-sysv bookworm "$root"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
install_packages --download-only
boot
if boots; then
  step "it has booted with $(inside systemctl --version | head -n 1)"
else
  step "it cannot be booted here: units are started by hand, on the ports of this machine"
fi

step "installing ..."
install_packages
# As on a machine that runs; the installation did without.
boots || mount -t proc proc "$root/proc"
version=$(dpkg-deb -f "$packages"/verger-cli*.deb Version)
for program in vergerd verger-agent verger-redact verger-db verger; do
  [ "$(inside "$program" --version)" = "$program $version" ] || fail "$program --version"
done
for page in man8/vergerd.8 man8/verger-agent.8 man8/verger-redact.8 man1/verger-db.1 man1/verger.1; do
  [ -f "$root/usr/share/man/$page.gz" ] || fail "no manual page $page"
done
[ "$(stat -c '%A %U' "$root/etc/verger/vergerd.yaml")" = "-rw-r----- root" ] || fail "mode of vergerd.yaml"
[ "$(inside stat -c '%U:%G %a' /var/lib/verger)" = "verger:verger 700" ] || fail "/var/lib/verger"
[ "$(inside stat -c '%U:%G %a' /var/lib/verger-agent)" = "verger-agent:verger-agent 700" ] ||
  fail "/var/lib/verger-agent"
inside sh -c 'test -L /etc/systemd/system/multi-user.target.wants/vergerd.service' ||
  fail "vergerd.service is not enabled"
inside sh -c '! test -e /etc/systemd/system/multi-user.target.wants/verger-agent.service' ||
  fail "verger-agent.service is enabled without a configuration"
quietly inside systemd-analyze verify --man=no vergerd.service verger-agent.service
[ ! -s "$work/last" ] || { cat "$work/last" >&2; fail "systemd-analyze verify"; }
if boots; then
  inside systemctl is-active --quiet vergerd || fail "vergerd does not run after the installation"
  ! inside systemctl is-active --quiet verger-agent || fail "verger-agent runs without a configuration"
else
  inside test -c /dev/null || inside mknod -m 666 /dev/null c 1 3
fi

step "starting both daemons with the packages' configurations ..."
start vergerd.service
until_true 30 "vergerd's answer" inside verger version
inside verger version | grep -qx "vergerd $version" || fail "verger version"
# As on vergerd's own machine, without TLS.
inside install -m 0600 -o verger-agent /var/lib/verger/agents-token /etc/verger/agents-token
start verger-agent.service
agent_serves() { log_of verger-agent.service | grep 'msg=.*serving\|url='; }
until_true 30 "the agent's start" agent_serves
stop verger-agent.service
inside rm /etc/verger/agents-token

step "the first hour, on an embedded cluster of three nodes ..."
first_hour

step "a run ..."
make_next
start_run
step "upgrading in the middle of it ..."
upgrade
check_upgraded_run

step "backing vergerd up, losing its directory, restoring it ..."
check_restore
for each in verger-agent.service n1 n2 n3; do stop "$each"; done

step "removing ..."
boots || stop vergerd.service
quietly inside apt-get remove -y verger-controller verger-agent verger-cli
[ -f "$root/etc/verger/vergerd.yaml" ] && [ -f "$root/var/lib/verger/journal.db" ] ||
  fail "remove deleted the configuration or the journal"
[ ! -e "$root/usr/bin/vergerd" ] || fail "vergerd is still there"
! boots || ! inside systemctl is-active --quiet vergerd || fail "vergerd still runs"
step "purging ..."
quietly inside apt-get purge -y verger-controller verger-agent verger-cli
left=$(find "$root/etc" "$root/var/lib/verger" "$root/var/lib/verger-agent" "$root/usr" "$root/lib/" \
  -path '*verger*' 2>/dev/null || true)
[ -z "$left" ] || fail "left behind: $left"
step "all packages are sound; the first hour, with output and times: $transcript"
