#!/usr/bin/env bash
# usage: run.sh BIN_DIRECTORY [--time SECONDS] [NAME...]   (called by ./dev fuzz)
# Runs as many targets in parallel as there are processors.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$1
shift
seconds=60
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --time)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: --time needs seconds" >&2; exit 64; }
      seconds=$2
      shift
      ;;
    -*) echo "fuzz: unknown option $1" >&2; exit 64 ;;
    *) names+=("${1%_fuzz}") ;;
  esac
  shift
done
known=()
for source in "$here"/*_fuzz.cpp; do
  name=$(basename "$source" _fuzz.cpp)
  known+=("$name")
done
[ ${#names[@]} -gt 0 ] || names=("${known[@]}")
for name in "${names[@]}"; do
  [ -x "$bin/${name}_fuzz" ] || { echo "fuzz: no target $name; there are: ${known[*]}" >&2; exit 64; }
done

work=$bin/../fuzz-work
mkdir -p "$work"

# One target; its lines of the table come in one piece. An input may take 10 s, and no allocation
# 128 MB: inputs are at most 16 KB, so only an unchecked length allocates that much.
run_one() {
  local name=$1 log=$work/$1.log artifact
  mkdir -p "$work/$name"
  if "$bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=128 -max_len=16384 -print_final_stats=1 -artifact_prefix="$work/$name-" \
    "$work/$name" "$here/corpus/$name" >"$log" 2>&1; then
    printf '%-18s %12s %12s\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
      "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")"
    return 0
  fi
  printf '%-18s FAILED, see %s\n%s\n' "$name" "$log" "$(tail -n 25 "$log")"
  artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  [ -z "$artifact" ] || printf 'replay: %s %s\n' "$bin/${name}_fuzz" "$artifact"
  return 1
}
export -f run_one
export bin work here seconds
printf '%-18s %12s %12s\n' target executions "per second"
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run_one {}' || exit 1
