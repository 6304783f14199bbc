#!/bin/bash
# info.sh: sl-info: what it reports, as text and as JSON, against what the system says.  Run by make check in the build
# tree.
. "${srcdir:-.}/tests/expect.sh"
info=tools/sl-info

run 0 "$info" --help
says '--ops'
run 2 "$info" --bogus
run 2 "$info" nonsense

export STARPU_NCUDA=0
cores=$(nproc)
run 0 env STARPU_NCPU=1 STARPU_SCHED=eager "$info"
for section in devices memory links kernels 'data types' libraries settings; do says "^$section\$"; done
says "^  cpu:0 +CPU team +.* $cores *\$"
says '^  policy +eager$'
says '^  policy from +STARPU_SCHED$'
says '^  Starling +[0-9]+\.[0-9]+\.[0-9]+$'
says "^  calibration +${STARPU_HOME:-$HOME}"
[ "$(awk '/^links$/ { getline; print $1 }' "$tmp/out")" = none ] || fail "links, with a single memory"
# StarPU may take a good part of main memory, and no more than the kernel counts
awk -v kib="$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" \
  '$1 == "main" { found = $3 > 0.2 * kib / 1024 && $3 < 1.01 * kib / 1024 } END { exit !found }' "$tmp/out" ||
  fail "main memory, of $(grep MemTotal /proc/meminfo)"
# What is free in it: no more than a limit of the process allows
case ${CFLAGS:-} in
  *-fsanitize*) ;;
  *)
    limited=$(bash -c 'ulimit -v 2097152 && exec "$@"' - "$info" | awk '$1 == "main" { print int($4) }')
    { [ "${limited:-0}" -gt 0 ] && [ "$limited" -lt 2048 ]; } || fail "free main memory under ulimit -v: $limited MiB"
    ;;
esac
# The CPU's flags, as the kernel reports them
if grep -qE '^  own *(x86-64-v4|avx512vl)' "$tmp/out"; then
  grep -qw avx512vl /proc/cpuinfo || fail "the variant for AVX-512 without AVX-512"
elif grep -qE '^  own *(x86-64-v3|fma)' "$tmp/out"; then
  grep -qw avx2 /proc/cpuinfo || fail "the variant for AVX2 without AVX2"
fi
# The machine, as others tell it; what is set; hints
[ ! -f /proc/cpuinfo ] || says "^  CPU +$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | sed -n '1s/[][().*+?|]/./gp;1q')"
says "^  kernel +$(uname -s) $(uname -r | sed 's/[+.]/./g') $(uname -m)\$"
says '^  topology +[1-9][0-9]* packages, [1-9][0-9]* cores'
says '^  compiled by +(gcc|clang) [0-9]'
says '^  load +[0-9]'
says '^  STARPU_WORKERS_NOBIND +1$'
says '^hints$'
# A process that uses a core, in a run during which it really had one
sh -c 'while :; do :; done' &
busy=$!
hundredths() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 100 / hz) }' "/proc/$busy/stat"; }
for _ in $(seq 20); do
  begin=$(($(date +%s%N) / 10000000)) used=$(hundredths)
  run 0 "$info"
  used=$(($(hundredths) - used)) took=$(($(date +%s%N) / 10000000 - begin))
  [ $((used * 20)) -lt $((took * 19)) ] || break
done
kill "$busy"
wait "$busy" || true
[ $((used * 20)) -lt $((took * 19)) ] || says "^  busy .*sh .process $busy.: [01]\\.[0-9] cores"
run 0 env SL_GEMM=plain "$info"
says '^  products +plain$'
says '^  products because +SL_GEMM requests it$'
! grep SL_GEMM "$tmp/err" || fail "something to say of a good SL_GEMM"
run 0 env SL_GEMM=fortran "$info"
complains '^starling: SL_GEMM=fortran must be one of'
# Types: which have rows of their own, which the engine promotes, which plain C computes, which have no products
says '^  float32 +cpu +native +native +[1-9][0-9]* '
says '^  float64 +cpu +native '
says '^  float16 +cpu +promoted to float32 +promoted to float32 '
says '^  int32 +cpu +not taken +not taken '
says '^  bool +cpu +not taken +not taken '
bf16='promoted to float32'
case $(sed -n 's/^  oneDNN uses *//p' "$tmp/out") in *bfloat16* | AMX) bf16=native ;; esac
says "^  bfloat16 +cpu +$bf16 "
run 0 env ONEDNN_MAX_CPU_ISA=AVX512_CORE DNNL_MAX_CPU_ISA=AVX512_CORE "$info"
says '^  bfloat16 +cpu +promoted to float32 '
run 0 env STARPU_NCPU=2 SL_BULK=7 "$info" --json "$tmp/info.json"
[ ! -s "$tmp/out" ] || fail "printed beside --json"
grep -q '"operations a task (SL_BULK)": 7' "$tmp/info.json" || fail "SL_BULK=7 is not reported"
[ "$(grep -c '"kind": "CPU team"' "$tmp/info.json")" -eq 2 ] || fail "not two teams"
[ "$(sed -n 's/^ *"cores": \([0-9]*\).*/\1/p' "$tmp/info.json" | awk '{ s += $1 } END { print s }')" -ge "$cores" ] ||
  fail "teams do not share out all $cores cores"
run 1 "$info" --json "$tmp/nowhere/info.json"
complains "$tmp/nowhere/info.json"
needs_space "$info" --json
run 1 env STARPU_SCHED=nosuch "$info"
complains 'no scheduling policy "nosuch"'

echo "--- operations"
run 0 "$info" --ops
says '^conv2d\(.*\)$'
says '^argmax\(.*\)  \[no gradient\]$'
says '^    natural logarithm$'
# Each of the list in codelets/ has its line, and words to it
ops=$(grep -Ec '^[a-z0-9_]+\(' "$tmp/out")
run 0 "$info" --ops --json "$tmp/ops.json"
[ "$(grep -c '^      "name": ' "$tmp/ops.json")" -eq "$ops" ] || fail "$ops operations as text, others as JSON"
[ "$ops" -ge 100 ] || fail "$ops operations only"
if grep -n '"doc": ""' "$tmp/ops.json"; then fail "operations or attributes without words"; fi
for f in info ops; do valid_json "$tmp/$f.json"; done

echo "--- emulated GPUs"
if [ -x tests/emu/sl-info ]; then
  run 0 env -u STARPU_NCUDA SL_EMU_DEVICES=2 STARPU_SILENT=1 tests/emu/sl-info
  says '^  gpu:1 +CUDA device '
  says '^  policy +dmdas$'
  says '^  policy from +default with GPUs$'
  says '^  tasks on auto +placed on GPUs'
  says '^  main memory +gpu:0 +[0-9.]+ '
  says '^  gpu:0 +gpu:1 +[0-9.]+ '
else
  echo "SKIP: GPUs: no emulated ones in this build"
fi
