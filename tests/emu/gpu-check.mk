# What dev/gpu-check --emulated takes along: drivers, bench and tests of the engine on emulated GPUs.  Made by `make
# gpu-check-emulated`.

emu_checked = \
	tests/emu/bench \
	tests/emu/engine_attention \
	tests/emu/engine_devices \
	tests/emu/engine_faults \
	tests/emu/engine_hybrid \
	tests/emu/engine_linear \
	tests/emu/engine_master_weights \
	tests/emu/engine_nn \
	tests/emu/engine_products \
	tests/emu/engine_scaling \
	tests/emu/engine_step \
	tests/emu/engine_teams \
	tests/emu/engine_unrolled \
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

emu_engine_cppflags = $(emu_cppflags) -I$(top_srcdir)/codelets -I$(top_srcdir)/tests
emu_engine_ldadd = tests/libharness.la $(CUNIT_LIBS) $(emu_ldadd)

tests_emu_engine_attention_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_attention_SOURCES = tests/test_attention.c
tests_emu_engine_attention_LDFLAGS = $(emu_ldflags)
tests_emu_engine_attention_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_attention_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_devices_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_devices_SOURCES = tests/test_devices.c
tests_emu_engine_devices_LDFLAGS = $(emu_ldflags)
tests_emu_engine_devices_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_devices_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_faults_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_faults_SOURCES = tests/test_faults.c
tests_emu_engine_faults_LDFLAGS = $(emu_ldflags)
tests_emu_engine_faults_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_faults_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_hybrid_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_hybrid_SOURCES = tests/test_hybrid.c
tests_emu_engine_hybrid_LDFLAGS = $(emu_ldflags)
tests_emu_engine_hybrid_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_hybrid_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_linear_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_linear_SOURCES = tests/test_linear.c
tests_emu_engine_linear_LDFLAGS = $(emu_ldflags)
tests_emu_engine_linear_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_linear_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_master_weights_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_master_weights_SOURCES = tests/test_master_weights.c
tests_emu_engine_master_weights_LDFLAGS = $(emu_ldflags)
tests_emu_engine_master_weights_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_master_weights_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_nn_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_nn_SOURCES = tests/test_nn.c
tests_emu_engine_nn_LDFLAGS = $(emu_ldflags)
tests_emu_engine_nn_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_nn_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_products_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_products_SOURCES = tests/test_products.c
tests_emu_engine_products_LDFLAGS = $(emu_ldflags)
tests_emu_engine_products_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_products_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_scaling_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_scaling_SOURCES = tests/test_scaling.c
tests_emu_engine_scaling_LDFLAGS = $(emu_ldflags)
tests_emu_engine_scaling_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_scaling_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_step_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_step_SOURCES = tests/test_step.c
tests_emu_engine_step_LDFLAGS = $(emu_ldflags)
tests_emu_engine_step_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_step_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_teams_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_teams_SOURCES = tests/test_teams.c
tests_emu_engine_teams_LDFLAGS = $(emu_ldflags)
tests_emu_engine_teams_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_teams_DEPENDENCIES = $(emu_stubs)

tests_emu_engine_unrolled_CPPFLAGS = $(emu_engine_cppflags)
tests_emu_engine_unrolled_SOURCES = tests/test_unrolled.c
tests_emu_engine_unrolled_LDFLAGS = $(emu_ldflags)
tests_emu_engine_unrolled_LDADD = $(emu_engine_ldadd)
EXTRA_tests_emu_engine_unrolled_DEPENDENCIES = $(emu_stubs)

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

gpu-check-emulated: $(emu_checked) tests/emu/lenet tests/emu/test_ops
.PHONY: gpu-check-emulated
