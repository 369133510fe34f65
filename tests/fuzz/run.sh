#!/usr/bin/env bash
# usage: run.sh BIN_DIRECTORY [--time SECONDS] [NAME...]   (called by ./dev fuzz)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$1
shift
seconds=60
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --time) [ $# -ge 2 ] || { echo "fuzz: --time needs seconds" >&2; exit 64; }; seconds=$2; shift ;;
    -*) echo "fuzz: unknown option $1" >&2; exit 64 ;;
    *) names+=("${1%_fuzz}") ;;
  esac
  shift
done
if [ ${#names[@]} -eq 0 ]; then
  for program in "$bin"/*_fuzz; do
    name=$(basename "$program")
    names+=("${name%_fuzz}")
  done
fi

work=$bin/../fuzz-work
failed=0
printf '%-24s %12s %10s\n' target executions per_second
for name in "${names[@]}"; do
  [ -x "$bin/${name}_fuzz" ] || { echo "fuzz: no target $name" >&2; exit 64; }
  mkdir -p "$work/$name" "$here/corpus/$name"
  log=$work/$name.log
  if "$bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -print_final_stats=1 -artifact_prefix="$work/$name-" "$work/$name" "$here/corpus/$name" \
    >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    printf '%-24s %12s %10s\n' "$name" "$runs" "$rate"
  else
    failed=1
    printf '%-24s FAILED, see %s\n' "$name" "$log"
    tail -n 25 "$log"
    for artifact in "$work/$name"-*; do
      [ -e "$artifact" ] && printf 'replay: %s %s\n' "$bin/${name}_fuzz" "$artifact"
    done
  fi
done
exit $failed
