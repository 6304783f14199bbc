# Manual pages, from what programs say to --help and doc/man/NAME.h2m.  A page for each program of bin_PROGRAMS and each
# script of dist_bin_SCRIPTS: man.sh sees to it.  They are distributed: only a build from git needs help2man.

man_pages = \
	doc/man/async.1 \
	doc/man/bench.1 \
	doc/man/gpt.1 \
	doc/man/hybrid.1 \
	doc/man/lenet.1 \
	doc/man/lstm.1 \
	doc/man/mlp.1 \
	doc/man/parallel.1 \
	doc/man/resnet18.1 \
	doc/man/sl-info.1 \
	doc/man/sl-launch.1 \
	doc/man/sl-machine.1 \
	doc/man/sl-plot.1 \
	doc/man/sl-run.1 \
	doc/man/sl-simulate.1 \
	doc/man/sl-trace.1 \
	doc/man/zoo.1

if MAN_PAGES
dist_man1_MANS = $(man_pages)
endif
EXTRA_DIST += \
	$(man_pages:.1=.h2m) \
	doc/man/environment.h2m \
	doc/man/generate
MAINTAINERCLEANFILES = $(man_pages)
dist_check_SCRIPTS += tests/man.sh

# Made again when a source of the program is newer; the program itself, which a distribution does not contain, only has
# to be there.
$(man_pages): doc/man/environment.h2m doc/man/generate $(models_libdriver_la_SOURCES)
doc/man/async.1: doc/man/async.h2m $(models_async_SOURCES) | models/async$(EXEEXT)
doc/man/bench.1: doc/man/bench.h2m $(tools_bench_SOURCES) | tools/bench$(EXEEXT)
doc/man/gpt.1: doc/man/gpt.h2m $(models_gpt_SOURCES) | models/gpt$(EXEEXT)
doc/man/hybrid.1: doc/man/hybrid.h2m $(models_hybrid_SOURCES) | models/hybrid$(EXEEXT)
doc/man/lenet.1: doc/man/lenet.h2m $(models_lenet_SOURCES) | models/lenet$(EXEEXT)
doc/man/lstm.1: doc/man/lstm.h2m $(models_lstm_SOURCES) | models/lstm$(EXEEXT)
doc/man/mlp.1: doc/man/mlp.h2m $(models_mlp_SOURCES) | models/mlp$(EXEEXT)
doc/man/parallel.1: doc/man/parallel.h2m $(models_parallel_SOURCES) | models/parallel$(EXEEXT)
doc/man/resnet18.1: doc/man/resnet18.h2m $(models_resnet18_SOURCES) | models/resnet18$(EXEEXT)
doc/man/sl-info.1: doc/man/sl-info.h2m $(tools_sl_info_SOURCES) | tools/sl-info$(EXEEXT)
doc/man/sl-launch.1: doc/man/sl-launch.h2m $(tools_sl_launch_SOURCES) | tools/sl-launch$(EXEEXT)
doc/man/sl-machine.1: doc/man/sl-machine.h2m $(tools_sl_machine_SOURCES) | tools/sl-machine$(EXEEXT)
doc/man/sl-plot.1: doc/man/sl-plot.h2m $(tools_sl_plot_SOURCES) | tools/sl-plot$(EXEEXT)
doc/man/sl-run.1: doc/man/sl-run.h2m $(tools_sl_run_SOURCES) | tools/sl-run$(EXEEXT)
doc/man/sl-simulate.1: doc/man/sl-simulate.h2m tools/sl-simulate
doc/man/sl-trace.1: doc/man/sl-trace.h2m tools/sl-trace
doc/man/zoo.1: doc/man/zoo.h2m $(models_zoo_SOURCES) | models/zoo$(EXEEXT)
$(man_pages):
	@$(MKDIR_P) doc/man
	$(AM_V_GEN)HELP2MAN='$(HELP2MAN)'; export HELP2MAN; \
	$(srcdir)/doc/man/generate "$$(program=$$(basename $@ .1); \
	  for p in $(bin_PROGRAMS) $(srcdir)/tools/sl-simulate $(srcdir)/tools/sl-trace; do \
	    case $$p in */$$program$(EXEEXT)) echo $$p; break ;; esac; done)" $@ $(VERSION)
