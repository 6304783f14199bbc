#!/bin/bash
# gpu-check.sh: dev/gpu-check on an emulated GPU, with few steps: its report, steps that fail, crash, hang or are left out,
# and a call that is continued.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized

# A bundle of links to programs of the build tree.
bundle=$tmp/bundle
mkdir -p "$bundle/bin" "$bundle/lib"
cp "$srcdir/dev/gpu-check" "$srcdir/dev/gpu-check-kernels.py" "$bundle"
echo yes >"$bundle/emulated"
echo test >"$bundle/version"
echo gpu_probe test_ops >"$bundle/tests"
for program in gpu_probe test_ops; do ln -s "$PWD/tests/emu/$program" "$bundle/bin"; done
tests/emu/gpu_probe --families >"$bundle/families"
grep -q '^loss .* l2_loss ' "$bundle/families" || fail "no family of losses"
check() { run "$1" timeout 600 "$bundle/gpu-check" run --results "$tmp/results" "${@:2}"; }

echo "--- each test that it takes has a program on emulated GPUs"
for name in $(sed -n 's/^tests="gpu_probe test_ops \(.*\)"$/\1/p' "$srcdir/dev/gpu-check"); do
  grep -q "^	tests/emu/engine_${name#test_} " "$srcdir/tests/emu/gpu-check.mk" || fail "gpu-check.mk does not make $name"
  listed=$name
done
[ -n "${listed-}" ] || fail "dev/gpu-check lists no tests"

echo "--- all is well"
check 0 --stage probe,operations --only '^(driver|launch|starpu|loss)$'
contains "$tmp/results/gpu.md" '^No step failed\.'
contains "$tmp/results/gpu.md" '^. Probe.* . 3 . 0 . 0 .$'
contains "$tmp/results/gpu.md" '^. Operations . 1 . 0 . 0 .$'
contains "$tmp/results/gpu.md" '^gpu:0: emulated GPU'
contains "$tmp/results/logs.txt" '^  Test: l2_loss \.\.\.passed'

echo "--- an operation fails, another crashes, a probe hangs"
rm "$bundle/bin/"*
cat >"$bundle/bin/test_ops" <<END
#!/bin/bash
case "\$*" in
  *dropout*) [ \$# -eq 1 ] || printf '  Test: fill ...passed\n'; printf '  Test: dropout ...'; kill -SEGV \$\$ ;;
  *pool*) export SL_EMU_FAIL=launch:40 ;;
esac
exec "$PWD/tests/emu/test_ops" "\$@"
END
cat >"$bundle/bin/gpu_probe" <<END
#!/bin/bash
[ "\$1" != streams ] || sleep 1000
[ "\$1" != "\${BROKEN-}" ] || { echo "FAILED: the \$1"; exit 1; }
exec "$PWD/tests/emu/gpu_probe" "\$@"
END
chmod +x "$bundle/bin/"*
rm -r "$tmp/results"
check 1 --stage operations --only '^(pooling|making)'
contains "$tmp/results/gpu.md" '^[1-3]\. Operations, pooling: FAILED .exit status 1.: `.*failed on CUDA'
contains "$tmp/results/gpu.md" '^### pooling failed'
contains "$tmp/results/gpu.md" '^. making . FAILED .ended by SIGSEGV. .*Test: dropout \.\.\.'
contains "$tmp/results/gpu.md" '^. making-uniform . passed'
! grep -q '^. making-fill' "$tmp/results/gpu.md" || fail "an operation that had passed ran again"
contains "$tmp/results/gpu.md" '^. making-dropout . FAILED .ended by SIGSEGV'
check 1 --stage probe --only '^(driver|streams)$' --seconds 8
contains "$tmp/results/gpu.md" '^. streams . FAILED .not over after [5-8] s'

echo "--- mended, it is continued"
rm "$bundle/bin/"*
for program in gpu_probe test_ops; do ln -s "$PWD/tests/emu/$program" "$bundle/bin"; done
check 0 --stage probe,operations --only '^(driver|streams|pooling|making)$' --missing
says '^No step failed\.'
complains 'pooling: passed'
! grep -q 'driver: passed' "$tmp/err" || fail "what had passed ran again"

echo "--- kernels by what they lose, of a program instead of Nsight Compute"
mkdir "$tmp/tools"
cat >"$tmp/tools/ncu" <<'END'
#!/bin/bash
while [ $# -gt 0 ] && [[ $1 != bin/* ]]; do
  [ "$1" != --log-file ] || log=$2
  shift
done
[ "$1" = bin/bench ] && [ "${*: -1}" = lstm-step ] && exit 3
row() { printf '"%s","%s","(8, 1, 1)","(256, 1, 1)","%s","%s"\n' "$@"; }
{
  echo "==PROF== Connected"
  echo '"ID","Kernel Name","Grid Size","Block Size","Metric Name","Metric Value"'
  row 0 "void add<float>(int)" gpu__time_duration.sum "2,000"
  row 0 "void add<float>(int)" dram__bytes.sum "2,930,000"
  row 1 "void sum<float>(int)" gpu__time_duration.sum "9,000"
  row 1 "void sum<float>(int)" dram__bytes.sum "2,930,000"
} >"$log"
END
chmod +x "$tmp/tools/ncu"
PATH=$tmp/tools:$PATH check 1 --stage kernels --only '^kernels-(lenet-bf16|operations)$'
contains "$tmp/results/gpu.md" '^. kernels-lenet-bf16 . passed'
contains "$tmp/results/gpu.md" '^. kernels-operations . FAILED .exit status 1. .*lstm-step failed'
for table in lenet-bf16 operation-attention operation-softmax operation-conv1-back; do
  contains "$tmp/results/gpu.md" "^### Kernels of $table: 2 launches, 11 µs"
done
contains "$tmp/results/gpu.md" '^. 8.0 . 72.7 % . 1 . 9.0 . 2930 . 1.0 . 0.11 . sum<float> .8, 1, 1. × .256, 1, 1. .'

echo "--- it is interrupted"
"$bundle/gpu-check" run --stage operations --only '^elementwise$' --results "$tmp/stopped" >"$tmp/out" 2>"$tmp/err" &
within 300 test -s "$bundle/logs/elementwise" || fail "it does not begin"
kill $!
wait $! 2>/dev/null && fail "an interrupted call ended well"
contains "$tmp/stopped/gpu.md" '^Interrupted after'
