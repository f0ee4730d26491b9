#!/usr/bin/env bash
# Speed and memory against their targets, everything side by side in one run. Reports; never fails on a figure.
#
#   scripts/bench.sh            BENCH_DISK=DIR: the folder on a disk to measure in, else $TMPDIR or /tmp
set -euo pipefail
cd "$(dirname "$0")/.."

export BENCH_DISK=${BENCH_DISK:-${TMPDIR:-/tmp}}
for name in $(compgen -e | grep '^CLAIM' || true); do unset "$name"; done

cargo build --quiet --release --bin claim --example minimal
export BENCH_MINIMAL
BENCH_MINIMAL=$(realpath "${CARGO_TARGET_DIR:-target}/release/examples/minimal")
cargo bench --quiet --no-run --bench processes --bench claims --bench mail --bench paths --bench queue --bench scale --bench drain
# Others to measure beside; what can't be built is left out.
peers=$PWD/target/peers
if cargo build --quiet --release --locked --manifest-path benches/peers/Cargo.toml --target-dir "$peers"; then
  export BENCH_PEERS=$peers/release/peers
fi

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "machine: $(nproc) x ${cpu:-unknown}, Linux $(uname -r), disk $(stat -f -c %T "$BENCH_DISK"), $(rustc --version)"
printf '%-44s %-34s %6s  %6s\n' "what" "measured (medians)" ratio target
cargo bench --quiet --bench processes
cargo bench --quiet --bench claims
cargo bench --quiet --bench mail
cargo bench --quiet --bench paths
cargo bench --quiet --bench queue
cargo bench --quiet --bench scale
cargo bench --quiet --bench drain
cargo bench --quiet --features etcd --bench etcd
