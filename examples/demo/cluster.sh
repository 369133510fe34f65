# Starts the demo's cluster: three embedded nodes with TLS and agents, and a controller, as README.md
# here describes. Sourced by run.sh, certificates.sh and backup.sh with the script's own arguments.
# With services=yes each node is a process of its own beside its agent, which starts and stops it by
# commands and has the backup repository "demo".
# shellcheck shell=bash
services=${services:-no}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=${VERGER_BIN:-$root/build/bin}
dir=$root/build/demo
keep=no
offset=0
minutes=30
nodes=(n1 n2 n3)
pids=()

die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

usage() {
  printf 'usage: %s [--keep] [--dir DIR] [--port-offset N] [--minutes N]\n' "$0"
  printf '  --keep           leave everything running, for --minutes N (30) at most\n'
  printf '  --dir DIR        databases and logs (build/demo), emptied at each start\n'
  printf '  --port-offset N  added to each port, for a second demo or ports that are in use\n'
}

while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=yes ;;
    --dir) [ $# -ge 2 ] || die "--dir needs a directory"; dir=$2; shift ;;
    --port-offset | --minutes)
      [[ ${2-} =~ ^[0-9]{1,5}$ ]] || die "$1 needs a number"
      if [ "$1" = --minutes ]; then minutes=$2; else offset=$2; fi
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'demo: unknown option %s; ' "$1" >&2; usage >&2; exit 64 ;;
  esac
  shift
done
[ "${VERGER_DEMO_ARGUMENTS_ONLY:-}" != yes ] || exit 0  # ./dev asks before it builds
controller_port=$((2115 + offset))
export VERGER_CONTROLLER=https://127.0.0.1:$controller_port
declare -A node_port=([n1]=$((2111 + offset)) [n2]=$((2112 + offset)) [n3]=$((2113 + offset)))
declare -A replication_port=([n1]=$((1111 + offset)) [n2]=$((1112 + offset)) [n3]=$((1113 + offset)))
declare -A agent_port=([n1]=$((2121 + offset)) [n2]=$((2122 + offset)) [n3]=$((2123 + offset)))

stop_these() { # PID...
  local pid
  for pid in "$@"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "$@"; do
    timeout 20 tail --pid="$pid" -f /dev/null 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
  done
}
server_pids() { cat "$dir"/n?/server.pid 2>/dev/null || true; }
stop_all() {
  stop_these "${pids[@]}"
  # shellcheck disable=SC2046  # one word for each process
  stop_these $(server_pids)  # after their agents, which might start them again
}
on_exit() {
  local status=$?
  if [ "$keep" = yes ] && [ $status -eq 0 ]; then
    printf 'still running, for %s minutes at most (end them with: kill %s)\n' "$minutes" \
      "$(printf '%s ' "${pids[@]}" $(server_pids))"
  else
    stop_all
  fi
  exit $status
}
trap on_exit EXIT
trap 'exit 130' INT TERM

for program in vergerd verger-agent verger; do
  [ -x "$bin/$program" ] || die "$bin/$program is not there; build it with: ./dev build"
done
for port in "${node_port[@]}" "${replication_port[@]}" "${agent_port[@]}" "$controller_port"; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    die "port $port on 127.0.0.1 is in use; end the process that listens there (an earlier demo with --keep?), or give --port-offset N"
  fi
done
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
if [ -e "$dir" ] && [ ! -e "$dir/.verger-demo" ] && [ -n "$(ls -A "$dir" 2>/dev/null)" ]; then
  die "$dir holds something that is not an earlier demo; choose another directory with --dir"
fi
rm -rf "$dir"
mkdir -p "$dir" || die "$dir cannot be made; choose another directory with --dir"
touch "$dir/.verger-demo"
free_kib=$(df -Pk "$dir" | awk 'NR == 2 {print $4}')
[ "$free_kib" -ge 204800 ] || die "$dir has $((free_kib / 1024)) MiB of free disk; the demo needs 200"

# Certificates of an authority made on the spot: one for each node, and one for vergerd's API. The
# agents get theirs of vergerd, for one-time tokens.
tls=$dir/certificates
export VERGER_CA_FILE=$tls/ca/ca.crt
mkdir -p "$tls/ca"
make_certificate() { # make_certificate FILE COMMON-NAME EXTENDED-USAGE [SUBJECT-ALT-NAMES]
  openssl req -x509 -CA "$tls/ca/ca.crt" -CAkey "$tls/ca.key" -days 7 \
    -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.crt" \
    -subj "/CN=$2" -addext basicConstraints=critical,CA:FALSE \
    -addext keyUsage=critical,digitalSignature,keyAgreement -addext "extendedKeyUsage=$3" \
    ${4:+-addext "subjectAltName=$4"} 2>>"$tls/openssl.log" ||
    die "openssl could not make the certificate $1: $(tail -n 1 "$tls/openssl.log")"
}
openssl req -x509 -days 7 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
  -keyout "$tls/ca.key" -out "$tls/ca/ca.crt" -subj "/CN=Verger demo root" \
  -addext keyUsage=critical,keyCertSign,cRLSign 2>>"$tls/openssl.log" ||
  die "openssl could not make a root: $(tail -n 1 "$tls/openssl.log")"
for node in "${nodes[@]}"; do
  mkdir -p "$dir/$node/certificates/roots"
  cp "$tls/ca/ca.crt" "$dir/$node/certificates/roots/ca.crt"
  make_certificate "$dir/$node/certificates/node" verger-node serverAuth,clientAuth \
    IP:127.0.0.1,DNS:localhost
done
make_certificate "$tls/api" vergerd serverAuth IP:127.0.0.1,DNS:localhost
# The built-in user of a new database; on a real cluster, a user in $ops with a password of its own.
mkdir -p "$dir/controller/credentials"
(umask 077 && printf 'admin\nchangeit\n127.0.0.1:*\n' >"$dir/controller/credentials/demo")
# A backup repository is a file that each agent has; here all of them name one directory.
mkdir -p "$dir/repositories" "$dir/backups"
printf '{"location": "%s", "compression": "zstd"}\n' "$dir/backups" >"$dir/repositories/demo.json"
# With it vergerd can sign the nodes' requests for new certificates.
mkdir -p "$dir/controller/authorities"
(umask 077 && cp "$tls/ca.key" "$dir/controller/authorities/demo.key" && cp "$tls/ca/ca.crt" "$dir/controller/authorities/demo.crt")

# until_true SECONDS WHAT COMMAND...
until_true() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    local pid
    for pid in "${pids[@]}"; do
      kill -0 "$pid" 2>/dev/null || {
        tail -n 3 "$dir"/*/*.log "$dir/controller.log" >&2 || true
        die "a process ended while waiting for $what; its log is in $dir"
      }
    done
    [ $SECONDS -lt $deadline ] || die "$what did not happen in time; the logs are in $dir"
    sleep 0.2
  done
}

printf 'Starting three embedded nodes (TLS) on a database written by a real 24.6 server, and the controller\n'
"$bin/vergerd" --data "$dir/controller" --port "$controller_port" --ca "$tls/ca/ca.crt" \
  --api-certificate-file "$tls/api.crt" --api-certificate-private-key-file "$tls/api.key" \
  --election-settle-ms 3000 --end-after-seconds $((minutes * 60)) >"$dir/controller.log" 2>&1 &
pids+=($!)
until_true 30 "the controller's start" "$bin/verger" cluster list
for node in "${nodes[@]}"; do
  mkdir -p "$dir/$node/db"
  tar --zstd --no-same-owner -xf "$here/database.tar.zst" -C "$dir/$node/db" ||
    die "the database could not be unpacked into $dir/$node/db"
  seeds=
  for other in "${nodes[@]}"; do
    [ "$other" = "$node" ] || seeds+="${seeds:+,}127.0.0.1:${node_port[$other]}"
  done
  (umask 077 && "$bin/verger" agent token "demo/$node" --host 127.0.0.1 >"$dir/$node/token" \
    2>"$dir/$node/enrol.log") &&
    "$bin/verger-agent" enrol --state "$dir/$node/agent" --token-file "$dir/$node/token" \
      >>"$dir/$node/enrol.log" 2>&1 ||
    die "the agent of $node could not enrol: $(tail -n 1 "$dir/$node/enrol.log")"
  tls_options=(--certificate-file "$dir/$node/certificates/node.crt"
    --certificate-private-key-file "$dir/$node/certificates/node.key"
    --trusted-root-certificates-path "$dir/$node/certificates/roots")
  node_options=(--db "$dir/$node/db" --node-port "${node_port[$node]}"
    --replication-port "${replication_port[$node]}" --cluster-size 3 --gossip-seed "$seeds"
    --max-mem-table-size 200 --enable-atom-pub-over-http --end-after-seconds $((minutes * 60)))
  if [ "$services" = no ]; then
    "$bin/verger-agent" --role both --state "$dir/$node/agent" "${node_options[@]}" \
      "${tls_options[@]}" --agent-port "${agent_port[$node]}" >"$dir/$node/agent.log" 2>&1 &
  else
    mkdir -p "$dir/$node/scratch"
    printf '%q ' "$bin/verger-agent" --role node --state "$dir/$node/server" "${node_options[@]}" \
      "${tls_options[@]}" >"$dir/$node/start.sh"
    printf '>>%q 2>&1 &\necho $! >%q\n' "$dir/$node/server.log" "$dir/$node/server.pid" \
      >>"$dir/$node/start.sh"
    printf 'kill $(cat %q)\n' "$dir/$node/server.pid" >"$dir/$node/stop.sh"
    bash "$dir/$node/start.sh"
    "$bin/verger-agent" --role agent --node "https://127.0.0.1:${node_port[$node]}" \
      --db "$dir/$node/db" --state "$dir/$node/agent" --agent-port "${agent_port[$node]}" \
      "${tls_options[@]}" --credentials-file "$dir/controller/credentials/demo" \
      --start-command "bash $dir/$node/start.sh" --stop-command "bash $dir/$node/stop.sh" \
      --backup-repositories "$dir/repositories" --backup-scratch "$dir/$node/scratch" \
      --end-after-seconds $((minutes * 60)) >"$dir/$node/agent.log" 2>&1 &
  fi
  pids+=($!)
done

register=()
for node in "${nodes[@]}"; do
  register+=(--node "$node=https://127.0.0.1:${node_port[$node]}" --agent "https://127.0.0.1:${agent_port[$node]}")
done

leader_seen() {
  "$bin/verger" cluster show demo -o json | jq -e '
    .snapshot.leader != null and ([.snapshot.nodes[] | select(.state == "Leader")] | length == 1)
    and ([.snapshot.nodes[] | select(.state == "Follower" and .lag_bytes == 0)] | length == 2)'
}
until_true 60 "the registration of the cluster" "$bin/verger" cluster add demo \
  --credentials demo "${register[@]}"
until_true 60 "the election of a leader" leader_seen

# Everything is written through the node interface of one node, which forwards to the leader.
base=https://127.0.0.1:${node_port[n1]}
node_curl=(curl -s --cacert "$tls/ca/ca.crt" -K "$tls/curl.conf")
(umask 077 && printf 'user = "admin:changeit"\n' >"$tls/curl.conf")
write() { # write STREAM[/metadata] TYPE JSON
  local status
  status=$("${node_curl[@]}" -o /dev/null -w '%{http_code}' -X POST "$base/streams/$1" \
    -H 'Content-Type: application/json' -H "ES-EventType: $2" \
    -H "ES-EventId: $(cat /proc/sys/kernel/random/uuid)" -d "$3")
  [ "$status" = 201 ] || die "a write to $1 was answered with $status"
}
