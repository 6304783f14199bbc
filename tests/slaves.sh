#!/bin/bash
# slaves.sh: training with devices in other processes, StarPU's TCP/IP workers on this machine: always what one process
# computes.  Run by make check in the build tree; by slaves-long.sh with more policies and devices.
. "${srcdir:-.}/tests/expect.sh"
export STARPU_WORKERS_NOBIND=1 # processes would bind their workers to the same cores
lenet=models/lenet
status=0
tests/slaves no-such-test >/dev/null 2>&1 || status=$?
[ $status -ne 77 ] || skip "StarPU was built without slave processes"
pids=() among=()
at_end() { [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true; }
shown+=("$tmp"/out.{1,2} "$tmp"/err.{1,2})

# Whether someone listens on a port of this machine; to connect would be taken for a slave
listens() { grep -qi ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }

free_port() {
  local port
  port=$((20000 + RANDOM % 12000))
  while listens $port; do port=$((port + 1)); done
  echo $port
}

# Whether so many slaves have made their folders, which they do before they look for the master.
are_there() { [ "$(find "$tmp/home" -path '*/sampling/bus' | wc -l)" -eq "$1" ]; }

# together SLAVES COMMAND...: the command as master with so many slaves, started by the words in `among`; each has folders of its own, for StarPU measures
# the links at every start
together() {
  local slaves=$1 status=0 i
  shift
  rm -rf "$tmp/home"
  mkdir -p "$tmp/home/master"
  export STARPU_TCPIP_MS_SLAVES=$slaves STARPU_NTCPIPMSTHREADS=1 STARPU_TCPIP_MS_PORT
  STARPU_TCPIP_MS_PORT=$(free_port)
  pids=()
  (
    [ -z "${late-}" ] || within 300 are_there "$slaves"
    STARPU_HOME=$tmp/home/master exec timeout 600 "$@" >"$tmp/out" 2>"$tmp/err"
  ) &
  pids+=($!)
  until [ -n "${late-}" ] || listens "$STARPU_TCPIP_MS_PORT"; do
    if ! kill -0 "${pids[0]}" 2>/dev/null; then # it has failed before
      slaves=0
      break
    fi
    sleep 0.1
  done
  for i in $(seq "$slaves"); do
    mkdir -p "$tmp/home/$i"
    # StarPU ends slaves without giving back what they have.
    (
      [ -z "${slave_room-}" ] || ulimit -v "$slave_room"
      STARPU_HOME=$tmp/home/$i STARPU_TCPIP_MS_MASTER=127.0.0.1 ASAN_OPTIONS=detect_leaks=0 exec timeout 600 "${among[@]}" "$@" >"$tmp/out.$i" 2>"$tmp/err.$i"
    ) &
    pids+=($!)
  done
  wait "${pids[0]}" || status=$?
  [ $status -eq 0 ] || [ "$slaves" -eq 0 ] || kill "${pids[@]:1}" 2>/dev/null || true
  for i in $(seq "$slaves"); do wait "${pids[$i]}" || [ $status -ne 0 ] || status=slave-$i; done
  pids=()
  unset STARPU_TCPIP_MS_SLAVES STARPU_NTCPIPMSTHREADS STARPU_TCPIP_MS_PORT
  [ "$status" = 0 ]
}

for trial in 1:lws 2:dmda ${SLAVES_LONG:+1:eager 1:dmda 2:lws 2:eager}; do
  if STARPU_SCHED=${trial#*:} together "${trial%:*}" tests/slaves; then echo "ok: slaves, policy: $trial"; else fail "slaves, policy: $trial"; fi
done

late=1 together 2 tests/slaves || fail "slaves that come before the master"
echo "ok: slaves that come before the master"

# Strangers at the master's port: so many say nothing, so many send random bytes, and all keep their connections.
if command -v python3 >/dev/null; then
  strangers=${SLAVES_LONG:+1000}
  # shellcheck disable=SC2016
  among=(bash -c 'exec python3 "$0" 127.0.0.1 "$STARPU_TCPIP_MS_PORT" "$1" "$1" "${@:2}"' "$srcdir/tests/rogue_clients.py" "${strangers:-100}")
  if together 1 tests/slaves; then grep '^strangers:' "$tmp/err.1"; else fail "a slave among strangers"; fi
  among=()
fi

have_images || { echo "SKIP: drivers: no Fashion-MNIST"; exit; }

# agree NAME: the losses in $tmp/there.json are those in $tmp/here.json, but for rounding
agree() {
  values "$tmp/here.json" train_loss >"$tmp/a"
  values "$tmp/there.json" train_loss >"$tmp/b"
  alike "$tmp/a" "$tmp/b" 2 3.16e-5 "$*"
  echo "compared: $*"
}

# busy SLAVES: so many slaves have had tasks, by what StarPU says
busy() {
  grep -A1 '^TCPIP_MS' "$tmp/err" | awk -v wanted="$1" '/task/ && $1 > 0 { n++ } END { exit n != wanted }' ||
    fail "not $1 slaves have worked"
}

export STARPU_WORKER_STATS=1
few=(--limit 48 --batch-size 24 --epochs 2 --lr 2 --quiet)
timeout 600 $lenet --device cpu:0 "${few[@]}" --json "$tmp/here.json"
for devices in cpu:1 cpu:0-2 ${SLAVES_LONG:+cpu:0,cpu:2 auto}; do
  together 2 $lenet --device "$devices" "${few[@]}" --json "$tmp/there.json" || fail "lenet on $devices"
  agree "lenet on $devices"
  case $devices in
    cpu:0-2) busy 2 ;;
    cpu:*) busy 1 ;;
  esac
done
few=(--limit 64 --batch-size 32 --epochs 2 --quiet)
timeout 600 models/mlp --mode step "${few[@]}" --json "$tmp/here.json"
together 1 models/mlp --mode step --device cpu:1 "${few[@]}" --json "$tmp/there.json" || fail "mlp in a slave"
agree "mlp, whole steps in a slave"
busy 1

# StarPU ends a slave that has no memory for a buffer, and the master then: not an error, but nobody waits, and the slave
# says why.  A slave that has none for a call reports that, and the master names it.
if [ -n "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ]; then
  echo "SKIP: a slave without memory: sanitizers take address space as they please"
elif slave_room=700000 together 1 models/mlp --mode step --device cpu:1 --limit 20000 --batch-size 20000 --epochs 1 --quiet; then
  fail "a slave without memory: the master ends well"
elif ! grep -Eq 'the slave process is out of memory: .*ulimit -v' "$tmp/err"; then
  contains "$tmp/err.1" 'Cannot allocate [0-9]+ bytes'
  complains 'has exited unexpectedly'
  echo "ok: a slave without memory ends, and the master with it"
fi
