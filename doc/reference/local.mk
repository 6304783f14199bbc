# make reference: the reference of all public functions, as HTML in doc/reference/html; needs doxygen.

reference:
	$(AM_V_GEN)rm -rf doc/reference/html && $(MKDIR_P) doc/reference/headers
	$(AM_V_at)$(srcdir)/doc/reference/collect doc/reference/headers
	$(AM_V_at)sed -e 's|@VERSION[@]|$(VERSION)|; s|@srcdir[@]|$(srcdir)|' $(srcdir)/doc/reference/Doxyfile.in >doc/reference/Doxyfile
	$(AM_V_at)doxygen doc/reference/Doxyfile
.PHONY: reference

dist_check_SCRIPTS += tests/reference.sh
EXTRA_DIST += \
	doc/reference/Doxyfile.in \
	doc/reference/collect \
	doc/reference/main.md
