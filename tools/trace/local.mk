# Traces: the program behind tools/sl-trace, and what it asks StarVZ for.

pkglibexec_PROGRAMS = tools/sl-trace-report
tools_sl_trace_report_SOURCES = \
	src/io/durable.c \
	src/io/durable.h \
	src/runtime/simulation/area.h \
	tools/trace/dag.c \
	tools/trace/main.c \
	tools/trace/paje.c \
	tools/trace/perfetto.c \
	tools/trace/picture.c \
	tools/trace/summary.c \
	tools/trace/tasks.c \
	tools/trace/trace.h
tools_sl_trace_report_CPPFLAGS = -I$(top_srcdir)/src -I$(top_srcdir)/tools/trace -D_GNU_SOURCE $(JANSSON_CFLAGS)
tools_sl_trace_report_LDADD = $(JANSSON_LIBS) -lm
starvzdir = $(pkgdatadir)/starvz
dist_starvz_DATA = \
	tools/starvz/cpu.yaml \
	tools/starvz/gpu.yaml
