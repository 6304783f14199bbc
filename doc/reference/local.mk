# make reference: the documentation of all public functions, as HTML in doc/reference/html; needs doxygen.

reference:
	$(AM_V_GEN)rm -rf doc/reference/html && $(MKDIR_P) doc/reference/headers
	$(AM_V_at)$(srcdir)/doc/reference/collect doc/reference/headers
	$(AM_V_at)sed -e 's|@VERSION[@]|$(VERSION)|; s|@srcdir[@]|$(srcdir)|' $(srcdir)/doc/reference/Doxyfile.in >doc/reference/Doxyfile
	$(AM_V_at)doxygen doc/reference/Doxyfile
.PHONY: reference

# The same as manual pages, one for each function: make install installs them.  They only need perl.

if HAVE_PERL
man3_page = doc/man3/starling.3
all-local: $(if $(some_tests),,$(man3_page))
$(man3_page): libstarling.la doc/reference/collect doc/reference/manual doc/reference/main.md
	$(AM_V_GEN)rm -rf doc/man3 && $(MKDIR_P) doc/man3/headers
	$(AM_V_at)$(srcdir)/doc/reference/collect doc/man3/headers >/dev/null
	$(AM_V_at)$(srcdir)/doc/reference/manual doc/man3/headers doc/man3 $(VERSION)
	$(AM_V_at)rm -r doc/man3/headers
install-data-local: $(man3_page)
	@$(NORMAL_INSTALL)
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man3'
	$(INSTALL_DATA) doc/man3/*.3 '$(DESTDIR)$(mandir)/man3'
uninstall-local:
	for page in doc/man3/*.3; do rm -f "$(DESTDIR)$(mandir)/man3/$${page##*/}"; done
endif

dist_check_SCRIPTS += tests/reference.sh
EXTRA_DIST += \
	doc/reference/Doxyfile.in \
	doc/reference/collect \
	doc/reference/manual \
	doc/reference/main.md
