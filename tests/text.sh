#!/bin/bash
# text.sh: links between the pages lead to files and headings that are there; phrases that are no plain English do not come
# back; where codespell is installed, it finds no misspelt word.  Run by make check; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
cd "$srcdir"
command -v python3 >/dev/null || skip "no python3"

cat >"$tmp/links.py" <<'END'
import glob, os, re
pages = ["README.md", "HACKING.md", "NEWS.md"] + sorted(
    glob.glob("doc/**/*.md", recursive=True) + glob.glob("python/*.md") + glob.glob("tests/emu/*.md"))
links = wrong = 0
def headings(page):
    text = re.sub(r"```.*?```", "", open(page, encoding="utf-8").read(), flags=re.S)
    return [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)]
for page in pages:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", open(page, encoding="utf-8").read(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link): continue
        path, _, heading = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        links += 1
        if not os.path.exists(target) or (heading and heading not in headings(target)):
            print(f"{page}: {link} leads nowhere")
            wrong = 1
print(f"{links} links in {len(pages)} pages")
raise SystemExit(wrong or links < 50)
END
run 0 python3 "$tmp/links.py"
says ' links in '

pages=(README.md HACKING.md NEWS.md)
while IFS= read -r page; do pages+=("$page"); done < <(find doc python tests/emu -name '*.md' | sort)
pages+=(doc/man/*.h2m src/starling/*.h)
mapfile -t sources < <(find dev src models tools -name '*.[ch]' | sort)
for phrase in '\bis told\b' '\bare told (once|together|at)\b' '\bputs out\b' '\bthe way back\b' '\bto be had\b' '\bgoes back through\b' \
  '\b(of|the message) tells\b'; do
  if grep -nE "$phrase" "${pages[@]}" "${sources[@]}" >"$tmp/out"; then fail "no plain English: $phrase"; fi
done

# Names of the interface that look like misspelt words
names=nin,nd,dout,ans,te,fo,som
if command -v codespell >/dev/null; then
  run 0 codespell -L "$names" "${pages[@]}"
else
  echo "SKIP: spelling: no codespell (Debian: codespell)"
fi
