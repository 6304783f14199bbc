# Looking at training and at the machine: sl-plot, sl-info; shell completion.

bin_PROGRAMS += \
	tools/sl-plot

tools_sl_plot_SOURCES = tools/sl-plot.c
tools_sl_plot_CPPFLAGS = $(models_cppflags)
tools_sl_plot_LDADD = $(models_ldadd) -lm
tools_sl_plot_LDFLAGS =

dist_check_SCRIPTS += \
	tests/plot.sh
