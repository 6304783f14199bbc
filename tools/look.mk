# Looking at training and at the machine: sl-plot, sl-info; shell completion.

bin_PROGRAMS += \
	tools/sl-info \
	tools/sl-plot

tools_sl_plot_SOURCES = tools/sl-plot.c
tools_sl_plot_CPPFLAGS = $(models_cppflags)
tools_sl_plot_LDADD = $(models_ldadd) -lm
tools_sl_plot_LDFLAGS = $(INSTALL_RUNPATH)

tools_sl_info_SOURCES = \
	tools/info/cores.c \
	tools/info/host.c \
	tools/info/info.h \
	tools/info/machine.c \
	tools/info/main.c \
	tools/info/ops.c \
	tools/info/software.c \
	tools/info/types.c
tools_sl_info_CPPFLAGS = $(AM_CPPFLAGS) $(SIMULATION_CFLAGS)
tools_sl_info_LDADD = models/libdriver.la $(core_libs)
tools_sl_info_LDFLAGS = $(INSTALL_RUNPATH) -export-dynamic

dist_check_SCRIPTS += \
	tests/completion.sh \
	tests/info.sh \
	tests/plot.sh

# Completion: one file, under the name of each program.

EXTRA_DIST += tools/completion.bash
completionsdir = $(datadir)/bash-completion/completions
installed_names = for p in $(bin_PROGRAMS) $(dist_bin_SCRIPTS); do basename $$p | sed '$(transform)'; done
install-data-hook: say-where
	@$(NORMAL_INSTALL)
	$(MKDIR_P) '$(DESTDIR)$(completionsdir)'
	for name in `$(installed_names)`; do \
	  $(INSTALL_DATA) '$(srcdir)/tools/completion.bash' "$(DESTDIR)$(completionsdir)/$$name" || exit 1; \
	done
# make install may be given other folders than configure was.
say-where:
	sed -e 's|^prefix=.*|prefix=$(prefix)|; s|^exec_prefix=.*|exec_prefix=$(exec_prefix)|' \
	  -e 's|^libdir=.*|libdir=$(libdir)|; s|^includedir=.*|includedir=$(includedir)|' src/starling.pc | \
	  sed '/^prefix=/!s|^\([a-z_]*\)=$(prefix)|\1=$${prefix}|' >src/starling.pc.installed
	$(INSTALL_DATA) src/starling.pc.installed '$(DESTDIR)$(pkgconfigdir)/starling.pc'
	rm -f src/starling.pc.installed
.PHONY: say-where

uninstall-hook:
	$(install_runtime) uninstall
	for name in `$(installed_names)`; do rm -f "$(DESTDIR)$(completionsdir)/$$name"; done
	for folder in '$(machinesdir)' '$(starvzdir)' '$(pkgdatadir)' '$(cmakedir)' '$(starlingincludedir)'; do \
	  test ! -d "$(DESTDIR)$$folder" || rmdir "$(DESTDIR)$$folder" 2>/dev/null || :; \
	done

# What is installed needs nothing of the build.
install_runtime = DESTDIR='$(DESTDIR)' version='$(PACKAGE_VERSION)' pkgdatadir='$(pkgdatadir)' prefix='$(prefix)' bindir='$(bindir)' libdir='$(libdir)' pkglibdir='$(pkglibdir)' \
	pkglibexecdir='$(pkglibexecdir)' installed_programs="`$(installed_names)`" OBJCOPY='$(OBJCOPY)' \
	DEBUG_SPLIT='$(DEBUG_SPLIT)' STARPU_LIBDIR='$(STARPU_LIBDIR)' STARPU_SONAME='$(STARPU_SONAME)' \
	starpu_module='$(starpu_module)' in_default_libdir='$(SLP_DEFAULT_LIBDIR)' $(srcdir)/build-aux/install-runtime
install-exec-hook:
	$(install_runtime) install
