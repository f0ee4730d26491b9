#!/usr/bin/env bash
# The main job, on a fresh machine with Rust and nothing else: run a command on a node that one caller holds,
# and see what a second caller is told.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet
target=${CARGO_TARGET_DIR:-$PWD/target}
export PATH="$target/release:$PATH"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CLAIMS_DIR="$scratch/.claims"

say() { printf '\n# %s\n' "$*"; }

say "alice runs a command on the node 'parser'; while it runs, bob reaches for it too"
claim run parser --owner alice -- sh -c '
  echo "alice works on $CLAIM_ID, generation $CLAIM_GENERATION"
  claim run parser --owner bob -- echo "bob works on it too" || echo "bob was told no: exit code $?"'

say "the command has ended, so the node is free again, with a higher generation"
claim run parser --owner bob -- sh -c 'echo "bob works on $CLAIM_ID, generation $CLAIM_GENERATION"'
