# What scripts of tests run: their logs depend on it, so that make check TESTS=... builds that and no more.  A script that is
# missing here needs nothing that is built.  tests/scripts.sh compares this with what scripts name; tests/emu/local.mk has
# the programs on emulated GPUs.

# All that is installed: programs, libraries.
installed_targets = $(bin_PROGRAMS) $(pkglibexec_PROGRAMS) $(lib_LTLIBRARIES) $(pkglib_LTLIBRARIES)

# (Automake must not see whose rules these are: it would leave out its own.)
log = sh.log
bare_log = log
tests/alloc-long.$(log): tests/test_alloc
tests/alloc.$(log): libcore.la
tests/bare.$(log): models/mlp tools/sl-info
tests/bench.$(log): tools/bench
tests/bits.$(log): tests/bits
tests/bombs-long.$(log): tests/bombs
tests/bombs.$(log): tests/bombs
tests/book-long.$(log): $(book_programs)
tests/book.$(log): $(book_programs)
tests/cgroup.$(log): tests/cgroup
tests/chaos-long.$(log): tests/chaos/train
tests/chaos.$(log): tests/chaos/train
tests/commands.$(log): $(installed_targets) $(book_programs) $(documented_tests)
tests/completion.$(log): $(installed_targets)
tests/cores.$(log): tests/test_teams tests/test_throttle tools/sl-info tools/sl-launch
tests/cplusplus.$(log): libstarling.la
tests/dist-long.$(log): models/lenet tests/dist tools/sl-launch
tests/dist-table.$(log): tests/dist tools/sl-launch $(pkglib_LTLIBRARIES)
tests/dist.$(log): models/lenet tests/dist tools/sl-launch
tests/drivers-long.$(log): $(installed_targets)
tests/drivers.$(log): $(installed_targets)
tests/example-op.$(log): tests/libcases.la tests/libharness.la libcore.la
tests/exports.$(log): libstarling.la
tests/fuzz.$(log): $(fuzz_targets)
tests/gpt-params.$(log): models/gpt
tests/gpt.$(log): models/gpt
tests/health.$(log): models/gpt
tests/home.$(log): models/mlp
tests/info.$(log): tools/sl-info $(emulated_info)
tests/install.$(log): $(installed_targets) $(dist_man1_MANS) $(man3_page)
tests/json.$(log): $(installed_targets)
tests/layers.$(bare_log): libcore.la
tests/listings.$(log): libcore.la
tests/locale.$(log): models/lenet $(locale_tests)
tests/lstm.$(log): models/lstm
tests/machine.$(log): tools/sl-machine
tests/man.$(log): $(installed_targets)
tests/misuse.$(log): libcore.la
tests/mpi-long.$(log): models/lenet tests/dist tools/sl-launch $(pkglib_LTLIBRARIES)
tests/mpi.$(log): models/lenet tests/dist tools/sl-launch $(pkglib_LTLIBRARIES)
tests/plot.$(log): models/async models/mlp tools/sl-plot
tests/programs-long.$(log): tests/test_types tests/test_zoo
tests/python-long.$(log): libstarling.la tools/sl-launch $(emulated_library)
tests/python.$(log): libstarling.la tools/sl-launch $(emulated_library)
tests/readme.$(log): libcore.la
tests/reference.$(log): libstarling.la
tests/restarts-long.$(log): models/gpt models/lstm models/mlp models/resnet18 tools/sl-launch
tests/schedules-long.$(log): tests/test_schedules
tests/sharing-long.$(log): libcore.la tests/test_moments
tests/sharing.$(log): libcore.la
tests/simulate.$(log): $(installed_targets) tests/placement tests/priorities
tests/sl-run.$(log): tools/sl-run
tests/slaves-long.$(log): models/lenet models/mlp tests/slaves
tests/slaves.$(log): models/lenet models/mlp tests/slaves
tests/spill.$(log): models/gpt models/lenet
tests/smpi.$(log): $(installed_targets) tests/dist
tests/soak-long.$(log): tests/soak
tests/trace.$(log): $(installed_targets) libcore.la
tests/usage.$(log): $(installed_targets)
tests/values.$(log): $(installed_targets)
tests/version.$(log): libstarling.la
tests/watch.$(log): $(installed_targets)
tests/zoo.$(log): models/zoo

locale_tests = \
	tests/test_data \
	tests/test_datasets \
	tests/test_explain \
	tests/test_graph \
	tests/test_io \
	tests/test_model \
	tests/test_nn \
	tests/test_own \
	tests/test_passes \
	tests/test_print
# Programs in commands of README and HACKING
documented_tests = tests/test_ops
