#!/usr/bin/env bash
# Kills, then freezes, every command at each of its system calls, and checks after each that others get their
# answers, that nothing is lost, and that who wakes changes nothing that is no longer its own.
# `scripts/sweep.sh --help` says what can be chosen.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v strace >/dev/null; then
  echo "scripts/sweep.sh needs strace: apt-get install strace" >&2
  exit 2
fi
cargo build --release --locked --quiet
target=${CARGO_TARGET_DIR:-$PWD/target}
exec python3 scripts/sweep --program "$(realpath "$target")/release/claim" "$@"
