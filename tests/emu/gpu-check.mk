# What tools/gpu-check --emulated takes along: drivers and bench on emulated GPUs.  Made by `make gpu-check-emulated`.

emu_checked = \
	tests/emu/bench \
	tests/emu/gpt \
	tests/emu/gpu_probe \
	tests/emu/hybrid \
	tests/emu/mlp \
	tests/emu/parallel \
	tests/emu/resnet18
EXTRA_PROGRAMS += $(emu_checked)
CLEANFILES += $(emu_checked)

tests_emu_bench_CPPFLAGS = -DHAVE_CUDA=1 $(tools_bench_CPPFLAGS) $(EMU_CFLAGS)
tests_emu_bench_SOURCES = $(tools_bench_SOURCES)
tests_emu_bench_LDFLAGS = $(emu_ldflags)
tests_emu_bench_LDADD = models/libdriver.la $(emu_ldadd) -lpthread
EXTRA_tests_emu_bench_DEPENDENCIES = $(emu_stubs)

tests_emu_gpu_probe_CPPFLAGS = $(emu_cppflags) -I$(top_srcdir)/codelets
tests_emu_gpu_probe_SOURCES = $(tests_gpu_probe_SOURCES)
tests_emu_gpu_probe_LDFLAGS = $(emu_ldflags)
tests_emu_gpu_probe_LDADD = $(emu_ldadd)
EXTRA_tests_emu_gpu_probe_DEPENDENCIES = $(emu_stubs)

tests_emu_gpt_CPPFLAGS = $(models_cppflags)
tests_emu_gpt_SOURCES = $(models_gpt_SOURCES)
tests_emu_gpt_LDFLAGS = $(emu_ldflags)
tests_emu_gpt_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_gpt_DEPENDENCIES = $(emu_stubs)

tests_emu_hybrid_CPPFLAGS = $(models_cppflags)
tests_emu_hybrid_SOURCES = $(models_hybrid_SOURCES)
tests_emu_hybrid_LDFLAGS = $(emu_ldflags)
tests_emu_hybrid_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_hybrid_DEPENDENCIES = $(emu_stubs)

tests_emu_mlp_CPPFLAGS = $(models_cppflags)
tests_emu_mlp_SOURCES = $(models_mlp_SOURCES)
tests_emu_mlp_LDFLAGS = $(emu_ldflags)
tests_emu_mlp_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_mlp_DEPENDENCIES = $(emu_stubs)

tests_emu_parallel_CPPFLAGS = $(models_cppflags)
tests_emu_parallel_SOURCES = $(models_parallel_SOURCES)
tests_emu_parallel_LDFLAGS = $(emu_ldflags)
tests_emu_parallel_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_parallel_DEPENDENCIES = $(emu_stubs)

tests_emu_resnet18_CPPFLAGS = $(models_cppflags)
tests_emu_resnet18_SOURCES = $(models_resnet18_SOURCES)
tests_emu_resnet18_LDFLAGS = $(emu_ldflags)
tests_emu_resnet18_LDADD = models/libdriver.la $(emu_ldadd)
EXTRA_tests_emu_resnet18_DEPENDENCIES = $(emu_stubs)

gpu-check-emulated: $(emu_checked) tests/emu/lenet tests/emu/test_device tests/emu/test_ops tests/emu/test_parallel
.PHONY: gpu-check-emulated
