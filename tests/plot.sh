#!/bin/bash
# plot.sh: what training reports while it runs (--plot, --log) and sl-plot, which compares runs: pictures, text, windows,
# and how all of it fails.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
mlp=(models/mlp --limit 256 --batch-size 64)
plot=tools/sl-plot

# A gnuplot that keeps its commands, and opens windows of the kind $1
stub() {
  mkdir -p "$tmp/bin"
  cat >"$tmp/bin/gnuplot" <<END
#!/bin/sh
if [ "\$1" = -e ]; then echo $1; exit 0; fi
cat >>"$tmp/told"
END
  chmod +x "$tmp/bin/gnuplot"
  : >"$tmp/told"
}

echo "--- lines of figures"
for driver in lenet mlp resnet18; do
  limit=64
  [ $driver != resnet18 ] || limit=8
  run 0 "models/$driver" --limit $limit --batch-size 8 --epochs 2 --log "$tmp/log.csv" --json "$tmp/$driver.json"
  [ "$(head -n 1 "$tmp/log.csv")" = epoch,seconds,images_per_second,tasks_per_batch,train_loss,train_accuracy,test_accuracy ] ||
    fail "other columns: $(head -n 1 "$tmp/log.csv")"
  # The same figures as in the JSON, to the digits printed
  for column in seconds train_loss test_accuracy; do
    awk -F, -v c=$column 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) n = i; next } { printf "%.6g\n", $n }' \
      "$tmp/log.csv" >"$tmp/a"
    values "$tmp/$driver.json" $column | awk '{ printf "%.6g\n", $1 }' >"$tmp/b"
    [ "$(wc -l <"$tmp/a")" -eq 2 ] || fail "$driver: not two lines"
    cmp -s "$tmp/a" "$tmp/b" || fail "$driver: $column: --log says $(paste -sd' ' "$tmp/a"), --json $(paste -sd' ' "$tmp/b")"
  done
done
run 1 "${mlp[@]}" --epochs 1 --log "$tmp/nowhere/log.csv"
complains "$tmp/nowhere/log.csv"
[ ! -s "$tmp/out" ] || fail "training began though nothing can be written"
needs_space "${mlp[@]}" --epochs 1 --log

for option in --json --log --plot; do
  mkdir -p "$tmp/folder.svg"
  run 1 "${mlp[@]}" --epochs 1 $option "$tmp/folder.svg"
  complains 'folder\.svg: Is a directory'
  [ ! -s "$tmp/out" ] || fail "training began though a folder cannot be written"
done

echo "--- windows"
stub unknown
run 1 env PATH="$tmp/bin:$PATH" "${mlp[@]}" --epochs 1 --plot window
complains 'gnuplot-qt or gnuplot-x11'
stub qt
run 0 env PATH="$tmp/bin:$PATH" "${mlp[@]}" --epochs 3 --plot window
plots() { grep -c '^plot' "$tmp/told" || true; }
has_three() { [ "$(plots)" -ge 3 ]; }
within 300 has_three || true # the driver does not wait for windows
[ "$(plots)" -eq 3 ] || fail "not one picture an epoch in the window"
! grep -q 'set terminal' "$tmp/told" || fail "a window takes gnuplot's own terminal"
rm -r "$tmp/bin"

run 0 "$plot" --help
says 'RUN\.json'
run 2 "$plot"
complains 'no runs are given'
run 2 "$plot" a.json -o curve.gif
complains 'curve.gif.*FILE\.svg'
mkdir "$tmp/bin"
ln -s "$(command -v env)" "$tmp/bin"
run 1 env PATH="$tmp/bin" "$(realpath "$plot")" "$tmp/mlp.json" -o -
complains 'gnuplot-nox'
run 0 env PATH="$tmp/bin" "$(realpath "$plot")" "$tmp/mlp.json" # the table needs none
says '^mlp '
complains 'gnuplot-nox'
command -v gnuplot >/dev/null || skip "pictures: no gnuplot (Debian: gnuplot-nox)"

echo "--- as text"
run 0 "${mlp[@]}" --epochs 2 --plot -
says '^epoch 2,'
says 'train loss'
[ "$(grep -c 'train loss' "$tmp/out")" -eq 1 ] || fail "more than one picture where nobody looks on"
if grep -q $'\033' "$tmp/out"; then fail "colours in a file"; fi
run 0 "${mlp[@]}" --epochs 1 --plot - --json -
complains 'train loss'
sed -n '/^{/,$p' "$tmp/out" >"$tmp/beside.json"
valid_json "$tmp/beside.json"
contains "$tmp/beside.json" '"epochs"'
if script -qec true "$tmp/terminal" </dev/null >/dev/null 2>&1; then
  TERM=xterm script -qec "${mlp[*]} --epochs 3 --plot -" "$tmp/terminal" </dev/null >"$tmp/out" 2>&1
  [ "$(grep -c 'train loss' "$tmp/terminal")" -ge 3 ] || fail "no picture after each epoch"
  grep -q $'\033\\[20A' "$tmp/terminal" || fail "pictures do not take each other's place"
else
  echo "SKIP: live text: no script(1)"
fi

echo "--- comparing runs"
cp "$tmp/mlp.json" "$tmp/an \"other\".json"
run 0 "$plot" "$tmp/lenet.json" "$tmp/an \"other\".json" "$tmp/resnet18.json" -o "$tmp/runs.svg"
says '^lenet +2 '
says '^an "other" +2 '
for text in lenet 'an "other"' 'training loss' accuracy 'seconds of training' epoch; do
  grep -q -- "$text" "$tmp/runs.svg" || fail "nothing in runs.svg says: $text"
done
# Four panels: three curves of loss and six of accuracy, twice; and as many entries in the keys
[ "$(grep -c "<g id=\"gnuplot_plot_" "$tmp/runs.svg")" -eq 18 ] || fail "not 18 curves but $(grep -c "gnuplot_plot_" "$tmp/runs.svg")"
run 0 "$plot" "$tmp/mlp.json" --output="$tmp/runs.png"
[ "$(head -c 4 "$tmp/runs.png" | tail -c 3)" = PNG ] || fail "runs.png is none"
run 0 "$plot" "$tmp/mlp.json"
says 'seconds of training'
[ ! -s "$tmp/err" ] || fail "gnuplot has something to say"
if [ -c /dev/full ]; then
  status=0
  "$plot" "$tmp/mlp.json" -o "$tmp/full.svg" >/dev/full 2>"$tmp/err" || status=$?
  [ $status -eq 1 ] || fail "exit status $status though the table is lost"
  complains 'standard output: No space left'
fi
# The table's last figures are those of the last epoch
loss=$(values "$tmp/mlp.json" train_loss | sed -n '$p')
says "^mlp +2 +[0-9.]+ +$(printf '%.4f' "$loss") "
seconds=$(values "$tmp/mlp.json" seconds | awk '{ s += $1 } END { printf "%.1f", s }')
says "^mlp +2 +$seconds "
# Names are text to gnuplot, whatever is in them
odd=$'a `touch run`\nb\\c'
cp "$tmp/mlp.json" "$tmp/$odd.json"
run 0 env -C "$tmp" "$(realpath "$plot")" "$odd.json" -o "$odd.svg"
[ ! -e "$tmp/run" ] || fail "gnuplot has run what a name says"
contains "$tmp/$odd.svg" 'a `touch run`\?b.c'
cp "$tmp/mlp.json" "$tmp/"$'latin\xe9\001.json'
run 0 "$plot" "$tmp/"$'latin\xe9\001.json' -o "$tmp/latin.svg"
contains "$tmp/latin.svg" 'latin\?\?'

echo "--- files of other kinds"
run 1 "$plot" "$tmp/none.json"
complains 'none\.json'
printf '{"program": "mlp",\n "epochs": [' >"$tmp/cut.json"
run 1 "$plot" "$tmp/cut.json"
complains 'cut\.json:2:[0-9]+: is not JSON'
echo '[1, 2]' >"$tmp/list.json"
run 1 "$plot" "$tmp/mlp.json" "$tmp/list.json"
complains 'list\.json: holds no epochs'
models/async plus-one --repeat 10 --json "$tmp/async.json" >/dev/null
run 1 "$plot" "$tmp/async.json"
complains 'async\.json: holds no epochs.*--json'
sed 's/"test_accuracy"/"test"/' "$tmp/mlp.json" >"$tmp/lacks.json"
run 1 "$plot" "$tmp/lacks.json"
complains 'lacks\.json: an epoch lacks its figures'
for epoch in 1e300 -5 null; do
  sed "s/\"epoch\": 2/\"epoch\": $epoch/" "$tmp/mlp.json" >"$tmp/lacks.json"
  run 1 "$plot" "$tmp/lacks.json"
  complains 'lacks\.json: an epoch lacks its figures'
done
echo '{"program": "mlp", "epochs": []}' >"$tmp/empty.json"
run 1 "$plot" "$tmp/empty.json"
complains 'before its first epoch'
sed 's/"train_loss": [0-9.e-]*/"train_loss": null/' "$tmp/mlp.json" >"$tmp/null.json"
run 0 "$plot" "$tmp/null.json"
[ ! -s "$tmp/err" ] || fail "gnuplot has something to say"
