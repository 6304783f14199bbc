#!/bin/bash
# smpi.sh: sums over simulated nodes last as long as the same messages do under SimGrid's SMPI, within a tenth, for 2 to 16 nodes.
# Run by make check; needs a build with a StarPU with SimGrid, and SMPI.
. "${srcdir:-.}/tests/expect.sh"
grep -q '^#define SLP_SIMULATION' config.h || skip "this build does not simulate: its StarPU has no SimGrid"
command -v smpicc >/dev/null && command -v smpirun >/dev/null || skip "no SMPI"
run 0 smpicc -O2 -o "$tmp/smpi" "$srcdir/tests/smpi.c"

# A machine that adds in no time, and its network for SMPI: each node has a link, each way, of half the latency.
cat >"$tmp/machine" <<END
cpu.cores 2
cpu.gflops 1e6
cpu.gbytes 1e9
node.gbytes 12.5
node.latency_us 8
END
cat >"$tmp/platform.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-15" speed="1Gf" bw="12.5GBps" lat="4us" sharing_policy="SPLITDUPLEX"/>
</platform>
END
printf 'node-%d\n' {0..15} >"$tmp/hosts"
# Latency and bandwidth as they are given, as in StarPU's simulation; SMPI has factors for another network.
plain=(--cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/latency-factor:1 --cfg=network/bandwidth-factor:1
  --cfg=network/weight-S:0 --cfg=network/TCP-gamma:-1 --cfg=network/crosstraffic:0)

for nodes in 2 4 8 16; do
  for kilobytes in 256 4096; do
    run 0 smpirun -np "$nodes" -platform "$tmp/platform.xml" -hostfile "$tmp/hosts" "${plain[@]}" "$tmp/smpi" $((1024 * kilobytes))
    messages=$(grep -E '^[0-9.]+$' "$tmp/out")
    run 0 "$srcdir/tools/sl-simulate" --build-dir . --machine "$tmp/machine" --nodes "$nodes" tests/dist mode=sum units=$((256 * kilobytes))
    sum=$(sed -n 's/^lasted //p' "$tmp/out")
    echo "$nodes nodes, $kilobytes KiB: $sum s, SMPI $messages s"
    awk "BEGIN { exit !($messages > 0 && $sum > 0.9 * $messages && $sum < 1.1 * $messages) }" ||
      fail "$nodes nodes, $kilobytes KiB: a sum lasts $sum s, the same messages $messages s under SMPI"
  done
done
