#!/usr/bin/env bash
# check.sh DIRECTORY: installs the packages of DIRECTORY in a new Debian 12 tree, starts what the units
# start with the default configurations, upgrades, removes and purges them. As root, for chroot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=$(realpath "$1")
[ "$(id -u)" = 0 ] || { echo "packaging: run this as root: it installs packages in a chroot" >&2; exit 1; }

root=$(mktemp -d)
started=()
finish() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf --one-file-system "$root"
}
trap finish EXIT
step() { printf 'packaging: %s\n' "$*" >&2; }
fail() { step "FAILED: $*"; exit 1; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
  LC_ALL=C.UTF-8 "$@"; }

step "making a Debian 12 tree ..."
# With the lists of packages, for the dependencies.
mmdebstrap --quiet --variant=apt --mode=root --skip=cleanup/apt/lists bookworm "$root"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"

# quietly LOG COMMAND...
quietly() {
  local log=$1
  shift
  "$@" >"$root/$log" 2>&1 || { cat "$root/$log" >&2; fail "$log"; }
}
install_packages() {
  quietly install.log inside sh -c 'apt-get install -y --no-install-recommends /packages/*.deb'
}

step "installing ..."
install_packages
# As on a machine that runs; the installation did without.
mount -t proc proc "$root/proc"
version=$(dpkg-deb -f "$packages"/verger-cli_*.deb Version)
for program in vergerd verger-agent verger-redact verger-db verger; do
  [ "$(inside "$program" --version)" = "$program $version" ] || fail "$program --version"
done
[ "$(stat -c '%A %U' "$root/etc/verger/vergerd.yaml")" = "-rw-r----- root" ] || fail "mode of vergerd.yaml"
[ "$(inside stat -c '%U:%G %a' /var/lib/verger)" = "verger:verger 700" ] || fail "/var/lib/verger"
[ "$(inside stat -c '%U:%G %a' /var/lib/verger-agent)" = "verger-agent:verger-agent 700" ] ||
  fail "/var/lib/verger-agent"
inside sh -c 'test -L /etc/systemd/system/multi-user.target.wants/vergerd.service' ||
  fail "vergerd.service is not enabled"
inside sh -c '! test -e /etc/systemd/system/multi-user.target.wants/verger-agent.service' ||
  fail "verger-agent.service is enabled without a configuration"
quietly verify.log inside systemd-analyze verify --man=no vergerd.service verger-agent.service
[ ! -s "$root/verify.log" ] || { cat "$root/verify.log" >&2; fail "systemd-analyze verify"; }
mount_check() { inside test -c /dev/null || inside mknod -m 666 /dev/null c 1 3; }
mount_check

# What a unit starts, as its user; the ports are free ones.
# start UNIT USER [VARIABLE=VALUE...]: its output is in UNIT.out
start() {
  local unit=$1 user=$2
  shift 2
  local command
  command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/$unit")
  # shellcheck disable=SC2086: words
  chroot --userspec="$user:$user" "$root" env -i PATH=/usr/bin:/bin "$@" $command \
    >"$root/$unit.out" 2>&1 &
  started+=($!)
}
# wait_for TEXT UNIT
wait_for() {
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    ! grep -q "$1" "$root/$2.out" || return 0
    kill -0 "${started[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  cat "$root/$2.out" >&2
  fail "$2: no line with \"$1\""
}
stop_last() {
  local pid=${started[-1]}
  kill -TERM "$pid"
  wait "$pid" || fail "it ended with $?"
  unset 'started[-1]'
}

step "starting vergerd as its unit does ..."
start vergerd.service verger VERGER_PORT=0
wait_for 'msg="serving"' vergerd.service
url=$(sed -n 's#.*url=\(http://[0-9.:]*\).*#\1#p' "$root/vergerd.service.out" | tail -n 1)
inside verger --controller "$url" version | grep -qx "vergerd $version" || fail "verger version"

step "starting verger-agent as its unit does ..."
cp "$root/var/lib/verger/agents-token" "$root/etc/verger/agents-token"
inside chown verger-agent /etc/verger/agents-token
start verger-agent.service verger-agent VERGER_AGENT_PORT=0
wait_for 'msg=.*serving\|url=' verger-agent.service
stop_last

step "the first hour: init, restart, login ..."
stop_last
home() { inside HOME=/root "$@"; }
quietly init.log inside vergerd init --api-names localhost --admin ann
grep -q "set  */etc/verger/vergerd.yaml" "$root/init.log" || fail "init did not set the configuration"
for file in admin-token api.pem agents-ca.pem; do
  [ "$(inside stat -c '%U:%G %a' "/var/lib/verger/$file")" = "verger:verger 600" ] || fail "$file: owner or mode"
done
[ "$(inside stat -c '%U:%G %a' /etc/verger/vergerd.yaml)" = "root:verger 640" ] || fail "vergerd.yaml after init"
start vergerd.service verger VERGER_PORT=0 VERGER_HOST=127.0.0.1
wait_for 'msg="serving"' vergerd.service
url=$(sed -n 's#.*url=https://[0-9.]*\(:[0-9]*\).*#https://127.0.0.1\1#p' "$root/vergerd.service.out" | tail -n 1)
fingerprint=$(sed -n 's/.*--ca-fingerprint \([0-9a-f]*\).*/\1/p' "$root/init.log")
quietly login.log home sh -c \
  "cat /var/lib/verger/admin-token | verger login $url --token-file - --ca-fingerprint $fingerprint"
grep -q "is ann (admin) from now on" "$root/login.log" || fail "login"
[ "$(home verger version)" = "verger $version
vergerd $version" ] || fail "verger version by the profile"
quietly enrol.log home verger agent enrol orders/n1 --host n1.example.com
grep -q -- "| sudo verger-agent enrol .* --controller https://127.0.0.1:" "$root/enrol.log" || fail "agent enrol"
[ ! -e "$root/var/lib/verger/bootstrap-token" ] || fail "the bootstrap token is still there"

step "upgrading, with vergerd at work ..."
echo "# changed by the operator" >>"$root/etc/verger/vergerd.yaml"
next=$version+next
for package in "$root"/packages/*.deb; do
  name=$(dpkg-deb -f "$package" Package)
  dpkg-deb -R "$package" "$root/packages/$name"
  sed -i "s/^Version: .*/Version: $next/" "$root/packages/$name/DEBIAN/control"
  rm "$package"
  dpkg-deb --root-owner-group -b "$root/packages/$name" "$root/packages/${name}_next.deb" >/dev/null
  rm -r "$root/packages/$name"
done
install_packages
[ "$(inside dpkg-query -W -f '${Version}' verger-controller)" = "$next" ] || fail "not upgraded"
grep -q "changed by the operator" "$root/etc/verger/vergerd.yaml" || fail "the configuration was replaced"
stop_last
start vergerd.service verger VERGER_PORT=0 VERGER_HOST=127.0.0.1
wait_for 'msg="serving"' vergerd.service
stop_last

step "removing ..."
quietly remove.log inside apt-get remove -y verger-controller verger-agent verger-cli
[ -f "$root/etc/verger/vergerd.yaml" ] && [ -f "$root/var/lib/verger/journal.db" ] ||
  fail "remove deleted the configuration or the journal"
[ ! -e "$root/usr/bin/vergerd" ] || fail "vergerd is still there"
step "purging ..."
rm "$root/etc/verger/agents-token"
quietly purge.log inside apt-get purge -y verger-controller verger-agent verger-cli
left=$(find "$root/etc" "$root/var/lib/verger" "$root/var/lib/verger-agent" "$root/usr" "$root/lib/" \
  -path '*verger*' 2>/dev/null || true)
[ -z "$left" ] || fail "left behind: $left"
step "all packages are sound"
