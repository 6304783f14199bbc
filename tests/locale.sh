#!/bin/bash
# locale.sh: files, texts and drivers are the same where numbers are written with a comma.  The locale is made here.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
command -v localedef >/dev/null || skip "no localedef (Debian: locales)"
mkdir "$tmp/locales"
localedef -i de_DE -f UTF-8 "$tmp/locales/de_DE.UTF-8" >"$tmp/out" 2>"$tmp/err" || true
[ -f "$tmp/locales/de_DE.UTF-8/LC_NUMERIC" ] || skip "no sources of locales (Debian: locales)"
export LOCPATH=$tmp/locales

decimal=$(LC_ALL=de_DE.UTF-8 bash -c 'printf %.1f 0,5' 2>/dev/null) || true
[ "$decimal" = 0,5 ] || fail "the locale does not write commas: \"$decimal\""

for program in print io graph passes model data datasets explain; do
  SLP_LOCALE=de_DE.UTF-8 run 0 "tests/test_$program"
done

# In Turkish 'I' has a small letter that is no byte: tolower leaves it as it is.
localedef -i tr_TR -f UTF-8 "$tmp/locales/tr_TR.UTF-8" >"$tmp/out" 2>"$tmp/err" || true
for program in nn io print graph model own; do
  SLP_LOCALE=tr_TR.UTF-8 run 0 "tests/test_$program"
done

if have_images; then
  figures() { grep -oE '"(loss|accuracy|lr|learning_rate)": [^,}]*' "$1" || fail "no figures in $1"; }
  for locale in C de_DE.UTF-8; do
    LC_ALL=$locale run 0 models/lenet --epochs 1 --limit 512 --lr 0.25 --json "$tmp/$locale.json"
    figures "$tmp/$locale.json" >"$tmp/$locale.figures"
  done
  cmp "$tmp/C.figures" "$tmp/de_DE.UTF-8.figures" || fail "a driver's figures are others with a comma"
fi
