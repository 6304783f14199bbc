# Emulated GPUs (tests/emu/README.md): the library once more, with its CUDA kernels compiled for the host, and programs
# that are linked with it.  Test equipment.

EXTRA_DIST += \
	tests/emu/README.md \
	tests/emu/common.sh \
	tests/emu/emu.map \
	tests/emu/goals.sh \
	tests/emu/trains.sh
dist_check_SCRIPTS += \
	tests/emu/drivers.sh \
	tests/emu/explain.sh \
	tests/emu/gpu-check.sh \
	tests/emu/lenet.sh
long_scripts += \
	tests/emu/larger.sh \
	tests/emu/device-long.sh \
	tests/emu/dist-long.sh \
	tests/emu/lenet-long.sh \
	tests/emu/memory.sh \
	tests/emu/graphs-long.sh \
	tests/emu/ops-long.sh \
	tests/emu/steps.sh \
	tests/emu/steps-long.sh \
	tests/emu/unequal.sh

# Built when one of the tests runs, not for every make check TESTS=...  (Automake must not see whose rules these are:
# it would leave out its own.)
EXTRA_LTLIBRARIES += \
	tests/emu/libcore.la \
	tests/emu/libgpu.la \
	tests/emu/libnccl.la \
	tests/emu/libnvml.la \
	tests/emu/libstarling.la
emu_programs = \
	tests/emu/dist \
	tests/emu/kernel_table \
	tests/emu/lenet \
	tests/emu/sl-info \
	tests/emu/test_cache \
	tests/emu/test_compiled \
	tests/emu/test_convolutions \
	tests/emu/test_counts \
	tests/emu/test_device \
	tests/emu/test_edges \
	tests/emu/test_energy \
	tests/emu/test_explain \
	tests/emu/test_gather \
	tests/emu/test_gpt \
	tests/emu/test_graphs \
	tests/emu/test_halves \
	tests/emu/test_heads \
	tests/emu/test_kernels \
	tests/emu/test_larger \
	tests/emu/test_last \
	tests/emu/test_limit \
	tests/emu/test_lt \
	tests/emu/test_norms \
	tests/emu/test_ops \
	tests/emu/test_parallel \
	tests/emu/test_state_device \
	tests/emu/test_steps \
	tests/emu/test_threads \
	tests/emu/test_waits
EXTRA_PROGRAMS = $(emu_programs)
CLEANFILES += $(EXTRA_LTLIBRARIES) $(emu_programs)

# Only the Python package takes it, which is not tried with sanitizers.
if !SANITIZERS
emu_library = tests/emu/libstarling.la
endif

if EMULATION
emulation = yes
emulated = $(emu_programs) tests/emu/libnccl.la tests/emu/libnvml.la $(emu_library)
tests/emu/device.$(log): tests/emu/test_heads tests/emu/test_cache tests/emu/test_compiled tests/emu/test_convolutions tests/emu/test_counts tests/emu/test_device tests/emu/test_edges tests/emu/test_energy tests/emu/libnvml.la tests/emu/test_gather tests/emu/test_halves tests/emu/test_kernels tests/emu/test_last tests/emu/test_lt tests/emu/test_norms tests/emu/test_parallel tests/emu/test_state_device tests/emu/test_threads tests/emu/test_waits
tests/emu/device-long.$(log): tests/emu/test_convolutions tests/emu/test_halves tests/emu/test_parallel tests/emu/test_waits
tests/emu/dist.$(log): tests/emu/dist tests/emu/libnccl.la tools/sl-launch
tests/emu/dist-long.$(log): tests/emu/dist tests/emu/libnccl.la tools/sl-launch
tests/emu/drivers.$(log): tests/emu/hybrid tests/emu/parallel
tests/emu/explain.$(log): tests/emu/sl-info tests/emu/test_explain
tests/emu/gpu-check.$(log): tests/emu/gpu_probe tests/emu/test_ops
tests/emu/graphs.$(log): tests/emu/test_graphs
tests/emu/larger.$(log): tests/emu/test_gpt tests/emu/test_larger tests/emu/test_limit
tests/emu/lenet-long.$(log): tests/emu/lenet
tests/emu/lenet.$(log): tests/emu/lenet
tests/emu/memory.$(log): tests/emu/lenet
tests/emu/graphs-long.$(log): tests/emu/test_graphs
tests/emu/ops-long.$(log): tests/emu/test_ops
tests/emu/ops.$(log): tests/emu/test_ops
tests/emu/steps-long.$(log): tests/emu/test_steps
tests/emu/steps.$(log): tests/emu/test_steps
tests/emu/unequal.$(log): tests/emu/resnet18
emulated_info = tests/emu/sl-info
emulated_library = tests/emu/libstarling.la
endif

emu_cppflags = -DHAVE_CUDA=1 -DSLP_EMULATE $(AM_CPPFLAGS) $(EMU_CFLAGS)

# The CUDA run time, cuBLAS and cuDNN

tests_emu_libgpu_la_CPPFLAGS = -D_GNU_SOURCE $(emu_cppflags) -I$(top_srcdir)/tests/emu -I$(top_srcdir)/codelets $(STARPU_CFLAGS) $(CUDA_CFLAGS)
tests_emu_libgpu_la_CFLAGS = $(SLP_CFLAGS) -fvisibility=default
tests_emu_libgpu_la_CXXFLAGS = -std=c++17 -Wall -Wextra -Wno-deprecated-declarations $(emu_races)
tests_emu_libgpu_la_SOURCES = \
	tests/emu/copy.c \
	tests/emu/count.c \
	tests/emu/cublas.cc \
	tests/emu/cudnn.cc \
	tests/emu/cudnn_computation.h \
	tests/emu/cudnn_graph.cc \
	tests/emu/cudnn_operations.h \
	tests/emu/cudnn_handle.h \
	tests/emu/device.c \
	tests/emu/emu.h \
	tests/emu/emulated.h \
	tests/emu/fail.c \
	tests/emu/fibres.h \
	tests/emu/graph.c \
	tests/emu/half_types.h \
	tests/emu/internal.h \
	tests/emu/kernels.c \
	tests/emu/memory.c \
	tests/emu/nvrtc.cc \
	tests/emu/races.cc \
	tests/emu/stream.c

# NCCL, loaded as the real one is; it finds the functions of emulated GPUs in the program.

tests_emu_libnccl_la_CPPFLAGS = $(tests_emu_libgpu_la_CPPFLAGS)
tests_emu_libnccl_la_CFLAGS = $(SLP_CFLAGS)
tests_emu_libnccl_la_LDFLAGS = -module -avoid-version -shared -rpath $(abs_builddir)/tests/emu
tests_emu_libnccl_la_SOURCES = tests/emu/nccl.c

# NVML, which knows emulated GPUs by their places on the bus.

tests_emu_libnvml_la_CFLAGS = $(SLP_CFLAGS) -fvisibility=default
tests_emu_libnvml_la_LDFLAGS = $(tests_emu_libnccl_la_LDFLAGS)
tests_emu_libnvml_la_SOURCES = tests/emu/nvml.c

# The library.  In a build for CUDA only what loads CUDA's libraries is compiled again: all else knows of CUDA already.  In one
# without nvcc it is what mentions CUDA or lists kernels (tests/layers holds headers to that).  Quickly, since it is not used
# long.  Warnings about deprecated functions of cuDNN are for nvcc to give.

if HAVE_CUDA
emu_sources = src/runtime/device/compiled.c src/runtime/device/gpu.c
else
emu_sources := $(shell cd $(srcdir) && grep -lE 'HAVE_CUDA|SLP_EMULATE|SLP_CUDA|SLP_[A-Z0-9_]*ROW|cuda_graph\.h' \
	$(filter %.c,$(libcore_la_SOURCES) $(libcodelets_la_SOURCES)))
endif
emu_objects = $(cuda_sources:.cu=.emu.lo) $(emu_sources:.c=.emuc.lo)
emu_replaced = $(emu_sources:.c=.lo) $(foreach f,$(emu_sources),$(dir $(f))libcodelets_la-$(notdir $(f:.c=.lo)))
emu_reused = $(filter-out $(emu_replaced),$(libcore_la_OBJECTS) $(libcodelets_la_OBJECTS))
tests_emu_libcore_la_SOURCES =
tests_emu_libcore_la_LIBADD = $(emu_reused) $(emu_objects) tests/emu/libgpu.la
tests_emu_libcore_la_DEPENDENCIES = $(emu_reused) $(emu_objects) tests/emu/libgpu.la

emu_depends = $(cuda_sources:.cu=.emu.d) $(emu_sources:.c=.emuc.d)
CLEANFILES += $(emu_depends)
emu_cxxflags = -std=c++17 -Wall -Wextra -Wno-missing-field-initializers -Wno-unknown-pragmas \
	-Wno-deprecated-declarations -fvisibility=hidden -ftls-model=initial-exec $(CXXFLAGS) $(emu_optimize)
emu_optimize = $(quick_cflags)
# make EMU_RACES=1, in a build folder of its own: looks for races (races.cc).  EMU_BLOCK=256: blocks as large as a GPU's.
emu_races = $(if $(EMU_RACES),-DEMU_RACES)
emu_kernel_flags = $(if $(EMU_RACES),-fsanitize=thread) $(if $(EMU_BLOCK),-DSLP_EMU_BLOCK=$(EMU_BLOCK))
AM_V_EMU = $(am__v_EMU_$(V))
am__v_EMU_ = $(am__v_EMU_$(AM_DEFAULT_VERBOSITY))
am__v_EMU_0 = @echo "  EMU     " $@;
am__v_EMU_1 =

%.emu.lo: %.cu
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(LIBTOOL) $(AM_V_lt) --tag=CXX --mode=compile $(CXX) $(DEFS) $(DEFAULT_INCLUDES) \
	  -I$(top_srcdir)/tests/emu -I$(top_srcdir)/codelets $(emu_cppflags) $(CPPFLAGS) $(emu_cxxflags) \
	  $(emu_kernel_flags) -MD -MP -MF $*.emu.d -MT $@ -c -o $@ -x c++ $<

%.emuc.lo: %.c
	@$(MKDIR_P) $(@D)
	$(AM_V_EMU)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) \
	  -I$(top_srcdir)/codelets $(emu_cppflags) $(CPPFLAGS) $(AM_CFLAGS) \
	  $(if $(filter codelets/%,$*),$(SLP_CODELET_CFLAGS)) $(CFLAGS) $(quick_cflags) \
	  -MD -MP -MF $*.emuc.d -MT $@ -c -o $@ $<

-include $(emu_depends)

# Libraries of no content in the place of those that StarPU was linked with: what it calls of them is in the program.

emu_stubs = $(EMU_SONAMES:%=tests/emu/stubs/%)
CLEANFILES += $(emu_stubs) tests/emu/stubs/*.map

tests/emu/stubs/%:
	@$(MKDIR_P) $(@D)
	$(AM_V_at)echo '$(@F) { };' >$@.map
	$(AM_V_GEN)$(CC) -shared -fPIC -nostdlib -Wl,-soname,$(@F) -Wl,--version-script=$@.map -o $@ -x c /dev/null

emu_ldflags = $(QUICK_LDFLAGS) -no-install -Wl,--dynamic-list=$(srcdir)/tests/emu/emu.map -Wl,--no-as-needed \
	-Wl,--unresolved-symbols=ignore-in-shared-libs -Wl,--disable-new-dtags \
	-Wl,-rpath,$(abs_builddir)/tests/emu/stubs
emu_ldadd = tests/emu/libcore.la $(emu_stubs) $(STARPU_LIBS) $(ONEDNN_LIBS) $(OPENBLAS_LIBS) \
	$(HWLOC_LIBS) $(ZLIB_LIBS) $(JANSSON_LIBS) $(SODIUM_LIBS) $(PROTOBUF_C_LIBS) $(PNG_LIBS) $(JPEG_LIBS) -lstdc++ -lm

# The library as a program loads it, for the Python package: put before the one that the package carries.

tests_emu_libstarling_la_SOURCES =
tests_emu_libstarling_la_LDFLAGS = -rpath $(abs_builddir)/tests/emu -version-info $(version_info) -Wl,--no-as-needed \
	-Wl,--unresolved-symbols=ignore-in-shared-libs -Wl,--disable-new-dtags -Wl,-rpath,$(abs_builddir)/tests/emu/stubs
tests_emu_libstarling_la_LIBADD = $(emu_ldadd)
EXTRA_tests_emu_libstarling_la_DEPENDENCIES = $(emu_stubs)

# Programs

tests_emu_test_ops_CPPFLAGS = $(codelets_cppflags)
tests_emu_test_ops_CFLAGS = $(tests_test_ops_CFLAGS)
tests_emu_test_ops_SOURCES = tests/test_ops.c
tests_emu_test_ops_LDFLAGS = $(emu_ldflags)
tests_emu_test_ops_LDADD = tests/libcases.la tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_ops_DEPENDENCIES = $(emu_stubs)

tests_emu_test_edges_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/codelets -I$(top_srcdir)/tests
tests_emu_test_edges_SOURCES = tests/test_edges.c
tests_emu_test_edges_LDFLAGS = $(emu_ldflags)
tests_emu_test_edges_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_edges_DEPENDENCIES = $(emu_stubs)

tests_emu_test_energy_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_energy_SOURCES = tests/test_energy.c
tests_emu_test_energy_LDFLAGS = $(emu_ldflags)
tests_emu_test_energy_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_energy_DEPENDENCIES = $(emu_stubs)

tests_emu_test_cache_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_cache_SOURCES = tests/test_cache.c
tests_emu_test_cache_LDFLAGS = $(emu_ldflags)
tests_emu_test_cache_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_cache_DEPENDENCIES = $(emu_stubs)

tests_emu_test_convolutions_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/codelets -I$(top_srcdir)/tests
tests_emu_test_convolutions_SOURCES = tests/emu/test_convolutions.c
tests_emu_test_convolutions_LDFLAGS = $(emu_ldflags)
tests_emu_test_convolutions_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_convolutions_DEPENDENCIES = $(emu_stubs)

tests_emu_test_counts_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_counts_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/courses.c tests/emu/courses.h \
	tests/emu/test_counts.c
tests_emu_test_counts_LDFLAGS = $(emu_ldflags)
tests_emu_test_counts_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_counts_DEPENDENCIES = $(emu_stubs)

tests_emu_kernel_table_CPPFLAGS = $(tests_emu_test_counts_CPPFLAGS)
tests_emu_kernel_table_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/courses.c tests/emu/courses.h \
	tests/emu/kernel_table.c
tests_emu_kernel_table_LDFLAGS = $(emu_ldflags)
tests_emu_kernel_table_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_kernel_table_DEPENDENCIES = $(emu_stubs)

tests_emu_test_halves_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/codelets -I$(top_srcdir)/tests
tests_emu_test_halves_SOURCES = tests/emu/test_halves.c
tests_emu_test_halves_LDFLAGS = $(emu_ldflags)
tests_emu_test_halves_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_halves_DEPENDENCIES = $(emu_stubs)

tests_emu_test_heads_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_heads_SOURCES = tests/emu/test_heads.c
tests_emu_test_heads_LDFLAGS = $(emu_ldflags)
tests_emu_test_heads_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_heads_DEPENDENCIES = $(emu_stubs)

tests_emu_dist_CPPFLAGS = $(emu_cppflags) $(CUDA_CFLAGS) -I$(top_srcdir)/src -I$(top_srcdir)/tests
tests_emu_dist_SOURCES = tests/dist.c tests/dist.h tests/dist_deaths.c tests/dist_exchanges.c
tests_emu_dist_LDFLAGS = $(emu_ldflags)
tests_emu_dist_LDADD = $(emu_ldadd)
EXTRA_tests_emu_dist_DEPENDENCIES = $(emu_stubs)

tests_emu_test_device_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_device_SOURCES = tests/emu/test_device.c
tests_emu_test_device_LDFLAGS = $(emu_ldflags)
tests_emu_test_device_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_device_DEPENDENCIES = $(emu_stubs)

tests_emu_test_explain_SOURCES = tests/test_explain.c
tests_emu_test_explain_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_explain_LDFLAGS = $(emu_ldflags)
tests_emu_test_explain_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_explain_DEPENDENCIES = $(emu_stubs)

tests_emu_test_gather_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_gather_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_gather.c
tests_emu_test_gather_LDFLAGS = $(emu_ldflags)
tests_emu_test_gather_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_gather_DEPENDENCIES = $(emu_stubs)

tests_emu_test_graphs_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_graphs_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_graphs.c
tests_emu_test_graphs_LDFLAGS = $(emu_ldflags)
tests_emu_test_graphs_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_graphs_DEPENDENCIES = $(emu_stubs)

tests_emu_test_larger_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_larger_SOURCES = tests/emu/test_larger.c
tests_emu_test_larger_LDFLAGS = $(emu_ldflags)
tests_emu_test_larger_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_larger_DEPENDENCIES = $(emu_stubs)

tests_emu_test_kernels_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_kernels_SOURCES = tests/emu/test_kernels.c
tests_emu_test_kernels_LDFLAGS = $(emu_ldflags)
tests_emu_test_kernels_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_kernels_DEPENDENCIES = $(emu_stubs)
tests_emu_test_last_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_last_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_last.c
tests_emu_test_last_LDFLAGS = $(emu_ldflags)
tests_emu_test_last_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_last_DEPENDENCIES = $(emu_stubs)

tests_emu_test_gpt_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_gpt_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_gpt.c
tests_emu_test_gpt_LDFLAGS = $(emu_ldflags)
tests_emu_test_gpt_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_gpt_DEPENDENCIES = $(emu_stubs)

tests_emu_test_limit_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_limit_SOURCES = tests/emu/test_limit.c
tests_emu_test_limit_LDFLAGS = $(emu_ldflags)
tests_emu_test_limit_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_limit_DEPENDENCIES = $(emu_stubs)

tests_emu_test_compiled_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests -I$(top_srcdir)/codelets
tests_emu_test_compiled_SOURCES = tests/emu/test_compiled.c
tests_emu_test_compiled_LDFLAGS = $(emu_ldflags)
tests_emu_test_compiled_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_compiled_DEPENDENCIES = $(emu_stubs)
tests_emu_test_lt_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_lt_SOURCES = tests/emu/test_lt.c
tests_emu_test_lt_LDFLAGS = $(emu_ldflags)
tests_emu_test_lt_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_lt_DEPENDENCIES = $(emu_stubs)

tests_emu_test_norms_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests
tests_emu_test_norms_SOURCES = tests/emu/test_norms.c
tests_emu_test_norms_LDFLAGS = $(emu_ldflags)
tests_emu_test_norms_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_norms_DEPENDENCIES = $(emu_stubs)

tests_emu_test_parallel_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests -I$(top_srcdir)/models
tests_emu_test_parallel_SOURCES = models/lenet.c tests/emu/test_parallel.c
tests_emu_test_parallel_LDFLAGS = $(emu_ldflags)
tests_emu_test_parallel_LDADD = models/libdriver.la tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_parallel_DEPENDENCIES = $(emu_stubs)

tests_emu_test_state_device_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_state_device_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_state_device.c
tests_emu_test_state_device_LDFLAGS = $(emu_ldflags)
tests_emu_test_state_device_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_state_device_DEPENDENCIES = $(emu_stubs)

tests_emu_test_steps_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_steps_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_steps.c
tests_emu_test_steps_LDFLAGS = $(emu_ldflags)
tests_emu_test_steps_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_steps_DEPENDENCIES = $(emu_stubs)

tests_emu_test_threads_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/tests/emu -I$(top_srcdir)/codelets
tests_emu_test_threads_CXXFLAGS = -std=c++17 -Wall -Wextra -ftls-model=initial-exec $(emu_optimize)
tests_emu_test_threads_SOURCES = tests/emu/test_threads.cc
tests_emu_test_threads_LDFLAGS = $(emu_ldflags)
tests_emu_test_threads_LDADD = $(emu_ldadd)
EXTRA_tests_emu_test_threads_DEPENDENCIES = $(emu_stubs)

tests_emu_test_waits_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/models -I$(top_srcdir)/tests
tests_emu_test_waits_SOURCES = models/driver/networks.c models/driver/networks.h tests/emu/test_waits.c
tests_emu_test_waits_LDFLAGS = $(emu_ldflags)
tests_emu_test_waits_LDADD = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)
EXTRA_tests_emu_test_waits_DEPENDENCIES = $(emu_stubs)

tests_emu_lenet_CPPFLAGS = $(models_cppflags)
tests_emu_lenet_SOURCES = $(models_lenet_SOURCES)
tests_emu_lenet_LDFLAGS = $(emu_ldflags)
tests_emu_lenet_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_lenet_DEPENDENCIES = $(emu_stubs)

tests_emu_sl_info_CPPFLAGS = $(emu_cppflags)
tests_emu_sl_info_SOURCES = $(tools_sl_info_SOURCES)
tests_emu_sl_info_LDFLAGS = $(emu_ldflags)
tests_emu_sl_info_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_sl_info_DEPENDENCIES = $(emu_stubs)
