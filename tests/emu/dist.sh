#!/bin/bash
# dist.sh: several processes with emulated GPUs train together over a stand-in for NCCL: the bits are those of as many GPUs of
# one process, no gradient goes through main memory, and what goes wrong on one rank is an error on all, which names it.
. "${srcdir:-.}/tests/emu/common.sh"
not_sanitized
. "${srcdir:-.}/tests/expect.sh"
export STARPU_HOME=$tmp STARPU_WORKERS_NOBIND=1 OMP_NUM_THREADS=1 SL_DIST_TIMEOUT=60 SL_EMU_MEMORY=128 SL_EMU_STATS=1
export SL_NCCL=$PWD/tests/emu/.libs/libnccl.so
unset SL_DIST RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SL_DIST_SECRET SL_DIST_WIRE SL_DIST_ORDER SL_DIST_LATENCY SL_EMU_NCCL_FAIL
gpus=1 # of a rank

# more COMMAND...: in the long runs only.
more() { [ -z "${DIST_LONG-}" ] || "$@"; }

# Without CPUs, which would update some of the parameters: their kernels may round otherwise.
alone() { run 0 env STARPU_NCPU=0 SL_EMU_DEVICES="$1" tests/emu/dist device=gpu shards="$1" "${@:2}"; }
ranks() { run "$2" env STARPU_NCPU=0 SL_DIST=nccl SL_EMU_DEVICES=$gpus tools/sl-launch --no-bind -n "$1" tests/emu/dist device=gpu shards=$gpus "${@:3}"; }
hashes() { sed -n 's/^\(\[[0-9]*\] \)\?hash //p' "$tmp/out"; }
# agree RANKS [HASH]: all have the same parameters, these.
agree() {
  [ "$(hashes | wc -l)$(hashes | sort -u | wc -l)" = "${1}1" ] || fail "$1 ranks have not one set of parameters"
  [ -z "${2-}" ] || [ "$(hashes | sort -u)" = "$2" ] || fail "$1 ranks: not the bits $2 of one process"
}
# moved RANKS: on all NCCL was called, in the order of the tree; no gradient came to main memory.
moved() {
  [ "$(grep -Ec '^\[[0-9]\] emulated NCCL: sends=[1-9][0-9]* receives=[1-9][0-9]* reduces=0 bytes=[1-9]' "$tmp/err")" = "$1" ] || fail "not all called NCCL"
  [ "$(grep -c '^\[[0-9]\] copies 0 of 0 bytes from GPUs$' "$tmp/out")" = "$1" ] || fail "something came to main memory"
  [ "$(grep -c '^\[[0-9]\] sums of GPUs: NCCL 2.14.0$' "$tmp/out")" = "$1" ] || fail "not all say that they have NCCL"
}
same() {
  local hash
  alone $(($1 * gpus)) "${@:2}"
  hash=$(hashes)
  ranks "$1" 0 "${@:2}"
  agree "$1" "$hash"
  moved "$1"
}

same 2
alone 3
three=$(hashes)
SL_EMU_KERNEL_US=200 SL_EMU_COPY_US=300 SL_EMU_JITTER_US=500 more same 3
more same 4 optimizer=adam
same 2 mode=eager dropout=0
more same 3 mode=eager dropout=0 optimizer=adam
more same 3 optimizer=clip
more same 2 dtype=bfloat16 dropout=0
SL_DIST_WIRE=bfloat16 more same 2 # which is for what goes over TCP
gpus=2
more same 2 # what lies on the second GPU comes to the first
gpus=1

if [ "${DIST_LONG-}" ]; then
  # Each rank keeps its part of the state: sums for one rank; the new values go from GPU to GPU, too.
  alone 3 optimizer=adam shared=1
  hash=$(hashes)
  ranks 3 0 optimizer=adam shared=1
  agree 3 "$hash"
  moved 3
fi

# In an order of NCCL's: other bits, the same on all.
SL_DIST_ORDER=fast ranks 3 0
agree 3
[ "$(hashes | sort -u)" != "$three" ] || fail "the stand-in adds as the tree does: this shows nothing"
[ "$(grep -Ec '^\[[0-9]\] emulated NCCL: sends=[0-9]+ receives=[0-9]+ reduces=[1-9]' "$tmp/err")" = 3 ] || fail "the order fast without ncclAllReduce"
for order in ${DIST_LONG:+fixed} fast; do
  SL_DIST_ORDER=$order ranks 3 0 mode=sums
  [ "$(grep -c '^\[[0-2]\] 0 wrong sums$' "$tmp/out")" = 3 ] || fail "wrong sums in the order $order"
done

# each RANKS STATUS COMMAND-OF-0 COMMAND-OF-OTHERS
each() { run "$2" env SL_DIST=nccl SL_EMU_DEVICES=1 tools/sl-launch --no-bind -n "$1" sh -c "if [ \"\$RANK\" = 0 ]; then exec $3; else exec $4; fi"; }

# Where a rank lacks something, all go without, and say so once; the same bits.
without() {
  [ "$2" = any ] || agree 3 "$2"
  [ "$(grep -Ec "^\[0\] starling: without NCCL gradients on GPUs go through main memory: $1" "$tmp/err")" = 1 ] || fail "not reported once: $1"
  [ "$(grep -Ec "^\[[0-2]\] sums of GPUs: $1" "$tmp/out")" = 3 ] || fail "sl_dist_info does not say: $1"
}
SL_NCCL=$tmp/none ranks 3 0
without 'rank 0: .*none: cannot open' "$three"
if [ "${DIST_LONG-}" ]; then
  each 3 0 'tests/emu/dist device=gpu' "env SL_NCCL=$tmp/none tests/emu/dist device=gpu"
  without 'rank 1: .*none: cannot open' "$three"
  each 3 0 'tests/emu/dist device=gpu' 'tests/emu/dist'
  without 'rank 1: there is no GPU' any # CPUs may round otherwise
  SL_DIST_TIMEOUT=10 SL_EMU_NCCL_FAIL=start@0@1 ranks 3 0
  without 'rank [0-2]: NCCL does not start' "$three"
  # Gradients that one rank has in main memory.
  each 3 0 'tests/emu/dist gpus=1' 'tests/emu/dist device=gpu'
  [ "$(grep -Ec '^\[[0-2]\] emulated NCCL: (sends=0 receives=[0-9]+|sends=[0-9]+ receives=0) reduces=0' "$tmp/err")" = 3 ] || fail "NCCL moves what is not on all GPUs"
  # A rank whose GPU has no memory left to join and to add in.
  for mode in step eager; do
    alone 3 dropout=0 mode=$mode
    hash=$(hashes)
    each 3 0 "tests/emu/dist device=gpu dropout=0 mode=$mode" "env SL_EMU_FAIL=malloc:-2 tests/emu/dist device=gpu dropout=0 mode=$mode"
    agree 3 "$hash"
    [ "$(grep -Ec '^\[[0-2]\] emulated NCCL: (sends=0 receives=[0-9]+|sends=[0-9]+ receives=0) reduces=0' "$tmp/err")" = 3 ] || fail "NCCL adds where there is no memory for that"
  done
fi

# fault TEXT RANKS-OF-THE-ERROR OPTION...: it happens to rank 1 of 3.
fault() {
  local rank
  ranks 3 1 "${@:3}"
  for rank in $2; do complains "^\[$rank\] error: .*$1"; done
}
fault 'rank 1: the gradient of [0-9a-z.]* is not finite' '0 1 2' fault=nan@2@1
fault 'rank 1: the gradient of [0-9a-z.]* is not finite' '0 1 2' fault=nan@2@1 mode=eager dropout=0
SL_DIST_ORDER=fast more fault 'rank 1: the gradient of [0-9a-z.]* is not finite' '0 1 2' fault=nan@2@1
fault 'lost the connection to rank 1' '0 2' fault=kill@2@1
more fault 'rank 1 has ended its part' '0 2' fault=quit@2@1
more fault 'rank 1 has 5 rows in a batch' '0 2' fault=rows@2@1
# In the midst of a sum: of the third group of NCCL's calls after those for the ten first values.
SL_EMU_NCCL_FAIL=kill@13@1 more fault 'lost the connection to rank 1' '0 2'
SL_EMU_NCCL_FAIL=call@13@1 fault 'rank 1: exchange [0-9]*, [0-9a-z.]*, over NCCL: unhandled system error' '0 1 2'
# In the midst of a broadcast.
SL_EMU_NCCL_FAIL=call@3@1 more fault 'rank 1: exchange [0-9]*, [0-9a-z.]*, over NCCL: unhandled system error' '0 1 2'
export SL_DIST_TIMEOUT=5
more fault 'rank 1 did not take part' '0 2' fault=stop@2@1
SL_EMU_NCCL_FAIL=stop@3@1 more fault 'rank 1 did not take part' '0 2'
SL_EMU_NCCL_FAIL=stop@12@1 SL_DIST_ORDER=fast fault 'rank 1 did not take part' '0 2'
[ "${DIST_LONG-}" ] || exit 0
each 2 1 'tests/emu/dist device=gpu' 'env SL_DIST_ORDER=fast tests/emu/dist device=gpu'
for rank in 0 1; do complains "^\[$rank\] error: .*NCCL, order fixed.*NCCL, order fast|^\[$rank\] error: .*NCCL, order fast.*NCCL, order fixed"; done

# A program's own choice; one process alone needs nothing.
run 0 env SL_DIST=tcp SL_EMU_DEVICES=1 tools/sl-launch --no-bind -n 3 tests/emu/dist device=gpu dist=nccl
agree 3 "$three"
moved 3
run 0 env STARPU_NCPU=0 SL_DIST=nccl RANK=0 WORLD_SIZE=1 SL_NCCL=$tmp/none SL_EMU_DEVICES=3 tests/emu/dist device=gpu shards=3
agree 1 "$three"
