# What `check.sh` runs the packages on: a Debian 12 tree, booted with its systemd by systemd-nspawn
# where this machine allows it, else entered with chroot. Sourced.
# shellcheck shell=bash
#
#   inside COMMAND...            in the tree, as root
#   start UNIT, stop UNIT        as systemctl does; without systemd its command, as its user
#   serve NAME USER COMMAND...   a process that is no unit of a package, until `stop NAME`
#   log_of NAME                  of a unit, or of what is served
#   until_true SECONDS WHAT COMMAND...
leader=  # the tree's process 1, as this machine sees it; empty: not booted
machine=
declare -A process=()

boots() { [ -n "$leader" ]; }

inside() {
  local clean=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8)
  if boots; then
    nsenter --target "$leader" --mount --uts --ipc --net --pid "${clean[@]}" "$@"
  else
    chroot "$root" "${clean[@]}" "$@"
  fi
}

# first_of PID: the descendant that is process 1 of its own namespace, empty: there is none yet
first_of() {
  local child
  for child in $(pgrep --parent "$1"); do
    if awk '/^NSpid:/ {exit !(NF > 2 && $NF == 1)}' "/proc/$child/status" 2>/dev/null; then
      echo "$child"
      return
    fi
    first_of "$child"
  done
}

# Leaves `leader` empty where it cannot be done. Its network is its own, without a way out.
boot() {
  local tries
  command -v systemd-nspawn >/dev/null || return 0
  systemd-nspawn --quiet --boot --directory="$root" --register=no --keep-unit --console=pipe \
    --private-network --timezone=off --resolv-conf=off </dev/null >"$work/boot.log" 2>&1 &
  machine=$!
  for ((tries = 0; tries < 300; ++tries)); do
    kill -0 "$machine" 2>/dev/null || break
    leader=$(first_of "$machine" | head -n 1)
    if boots && inside systemctl is-system-running --wait >/dev/null 2>&1; then
      return 0
    fi
    sleep 0.1
  done
  leader=
}

power_off() {
  local pid
  for pid in "${process[@]}"; do
    kill "$pid" 2>/dev/null || echo "process $pid has ended by itself" >&2
  done
  if [ -n "$machine" ]; then
    # Fails where the machine goes down before it has answered; whether it does is seen below.
    if boots && ! inside systemctl poweroff --no-wall >"$work/poweroff.log" 2>&1; then
      echo "systemctl poweroff: $(cat "$work/poweroff.log")" >&2
    fi
    if ! timeout "$(boots && echo 30 || echo 1)" tail --pid="$machine" -f /dev/null; then
      # The tree is thrown away: nothing in it has to be ended in order.
      echo "the machine did not power off in time and is killed" >&2
      kill -KILL "$machine" || echo "it ended just before" >&2
    fi
  fi
  wait
}

log_of() {
  if boots; then inside journalctl --unit "$1" --output cat --no-pager; else cat "$work/$1.out"; fi
}

start() {
  local unit=$1 command user
  if boots; then
    inside systemctl start "$unit" || { log_of "$unit" >&2; fail "systemctl start $unit"; }
    return
  fi
  command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/$unit")
  user=$(sed -n 's/^User=//p' "$root/lib/systemd/system/$unit")
  # shellcheck disable=SC2086: words
  serve "$unit" "$user" $command
}

serve() {
  local name=$1 user=$2
  shift 2
  if boots; then
    inside systemd-run --quiet --unit "$name" --uid "$user" "$@" || fail "systemd-run $name"
    return
  fi
  chroot --userspec="$user:$user" "$root" env -i PATH=/usr/bin:/bin "$@" >>"$work/$name.out" 2>&1 &
  process[$name]=$!
}

stop() {
  if boots; then
    inside systemctl stop "$1" || fail "systemctl stop $1"
    return
  fi
  [ -n "${process[$1]:-}" ] || return 0
  kill -TERM "${process[$1]}"
  wait "${process[$1]}" || fail "$1 ended with $?"
  unset "process[$1]"
}

until_true() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >"$work/last" 2>&1; do
    [ $SECONDS -lt $deadline ] || { cat "$work/last" >&2; fail "$what did not happen in time"; }
    sleep 0.3
  done
}
