#!/usr/bin/env bash
# Called by ./dev bench, which has built the programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ "${1:-}" = control ]; then
  shift
  exec build/release/bin/verger-bench-control "$@"
fi
if [ "${1:-}" = cluster ]; then
  shift
  exec build/release/bin/verger-bench-cluster "$@"
fi
if [ "${1:-}" = agent ]; then
  shift
  exec build/release/bin/verger-bench-agent "$@"
fi
if [ "${1:-}" = node ]; then
  shift
  exec build/release/bin/verger-bench-node "$@"
fi
if [ "${1:-}" = backup ]; then
  shift
  exec build/release/bin/verger-bench-backup "$@"
fi
exec build/release/bin/verger-bench "$@"
