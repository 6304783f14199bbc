# The book: its programs are built by make check; make book writes listings and outputs into the text.

book_programs = \
	doc/book/async-memory \
	doc/book/async-queue \
	doc/book/async-steps \
	doc/book/async-wait \
	doc/book/cplusplus \
	doc/book/devices-allreduce \
	doc/book/devices-concise \
	doc/book/devices-scratch \
	doc/book/hardware-costs \
	doc/book/hybrid-export \
	doc/book/hybrid-mlp \
	doc/book/hybrid-once \
	doc/book/hybrid-three-ways \
	doc/book/parallel-copy \
	doc/book/parallel-devices \
	doc/book/parallel-graph \
	doc/book/solution-batch \
	doc/book/solution-bounds \
	doc/book/solution-branch \
	doc/book/solution-call-by-call \
	doc/book/solution-cost \
	doc/book/solution-loss \
	doc/book/solution-order \
	doc/book/solution-passes \
	doc/book/solution-shares \
	doc/book/solution-sizes \
	doc/book/solution-small \
	doc/book/solution-tree

check_programs += $(book_programs)
doc_book_devices_concise_SOURCES = doc/book/book.c doc/book/book.h doc/book/devices-concise.c
doc_book_devices_scratch_SOURCES = doc/book/book.c doc/book/book.h doc/book/devices-scratch.c
doc_book_cplusplus_SOURCES = doc/book/book.h doc/book/cplusplus.cc
doc_book_cplusplus_CXXFLAGS = -Wall -Wextra
EXTRA_DIST += \
	doc/book/1-hybrid.md \
	doc/book/2-async.md \
	doc/book/3-parallel.md \
	doc/book/4-hardware.md \
	doc/book/5-devices.md \
	doc/book/6-concise.md \
	doc/book/7-cplusplus.md \
	doc/book/README.md \
	doc/book/book.h \
	doc/book/regenerate

book-programs: $(book_programs)
book: book-programs
	$(srcdir)/doc/book/regenerate --build .
.PHONY: book book-programs
