#!/usr/bin/env bash
# Called by ./dev bench, which has built the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
exec build/release/bin/verger-bench "$@"
