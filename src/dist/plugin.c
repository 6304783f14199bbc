/* Carriers in separate libraries, because they need libraries that not every machine has. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dist/transport.h"

/* The folder of this library. */
static void own_folder(char folder[PATH_MAX])
{
	Dl_info info;
	char *slash = NULL;
	*folder = '\0';
	if (dladdr((void *)slp_plugin, &info) && info.dli_fname) snprintf(folder, PATH_MAX, "%s", info.dli_fname);
	if ((slash = strrchr(folder, '/'))) *slash = '\0';
	else snprintf(folder, PATH_MAX, ".");
}

/* As it is installed; as it is built; where the system looks. */
static void *load(const char *name)
{
	static const char *const places[] = {"%s/starling/libstarling-%s.so", "%s/libstarling-%s.so"};
	char folder[PATH_MAX], path[PATH_MAX + 64];
	void *library = NULL;
	own_folder(folder);
	for (int i = 0; !library && i < 2; i++) {
		snprintf(path, sizeof path, places[i], folder, name);
		library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	snprintf(path, sizeof path, "libstarling-%s.so", name);
	return library ? library : dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

const struct slp_carrier *slp_plugin(const char *name, char why[SLP_DIST_WHY])
{
	void *library = load(name);
	if (!library) {
		snprintf(why, SLP_DIST_WHY, "%s", dlerror());
		return NULL;
	}
	const struct slp_carrier *carrier = dlsym(library, "starling_carrier");
	if (carrier && carrier->version == SLP_CARRIER_VERSION) return carrier;
	snprintf(why, SLP_DIST_WHY, "libstarling-%s.so has a different version", name);
	return NULL;
}
