/* The version of this interface.  This is the only place that defines it: configure, packages and the wheel read it
 * here.  sl_version() is the version of the library that the program runs with. */
#ifndef STARLING_VERSION_H
#define STARLING_VERSION_H

#define SL_VERSION_MAJOR 0
#define SL_VERSION_MINOR 2
#define SL_VERSION_PATCH 0

#define SL_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define SL_VERSION_EXPAND_(major, minor, patch) SL_VERSION_TEXT_(major, minor, patch)
#define SL_VERSION SL_VERSION_EXPAND_(SL_VERSION_MAJOR, SL_VERSION_MINOR, SL_VERSION_PATCH)

/* True for this version and later ones: #if SL_VERSION_AT_LEAST(0, 2, 0). */
#define SL_VERSION_AT_LEAST(major, minor, patch)                                                                       \
	(SL_VERSION_MAJOR > (major) || (SL_VERSION_MAJOR == (major) && SL_VERSION_MINOR > (minor)) ||                  \
	 (SL_VERSION_MAJOR == (major) && SL_VERSION_MINOR == (minor) && SL_VERSION_PATCH >= (patch)))

#endif
