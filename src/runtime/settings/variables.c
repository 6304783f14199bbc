/* Names of our environment variables: one that is not known is reported once, because its value has no effect. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/settings/environment.h"

#define X(name) #name,
static const char *const known[] = {
#include "runtime/settings/variables.def"
};
#undef X
enum { KNOWN = sizeof known / sizeof *known, LONGEST = 64 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* The number of characters to insert, remove or replace to make b of a, of at most LONGEST characters.
 * V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals", 1966. */
static int distance(const char *a, size_t na, const char *b)
{
	int row[LONGEST + 1], nb = (int)strlen(b);
	for (int k = 0; k <= nb; k++) row[k] = k;
	for (size_t i = 0; i < na; i++) {
		int before = row[0]++;
		for (int k = 1; k <= nb; k++) {
			int replaced = before + (a[i] != b[k - 1]);
			before = row[k];
			row[k] = least(replaced, least(row[k], row[k - 1]) + 1);
		}
	}
	return row[nb];
}

/* The name of a setting in `environ`, which ends at its equals sign, if it is one of ours; 0: it is not. */
static size_t our_name(const char *setting)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t n = strspn(setting, letters);
	bool ours = !strncmp(setting, "SL_", 3) && setting[n] == '=';
	return ours && strncmp(setting, "SL_EMU_", 7) ? n : 0; /* tests/emu */
}

const char *slp_env_nearest(const char *name, size_t n, int *difference)
{
	const char *nearest = NULL;
	for (int i = 0; n <= LONGEST && i < KNOWN; i++) {
		int d = distance(name, n, known[i]);
		if (nearest && d >= *difference) continue;
		nearest = known[i];
		*difference = d;
	}
	return nearest;
}

void slp_env_report_unknown(void)
{
	static atomic_bool reported;
	if (atomic_exchange(&reported, true)) return;
	for (char **setting = environ; setting && *setting; setting++) {
		size_t n = our_name(*setting);
		int difference = LONGEST;
		const char *nearest = n ? slp_env_nearest(*setting, n, &difference) : NULL;
		if (!n || (nearest && !difference)) continue;
		fprintf(stderr, "starling: there is no environment variable %.*s", (int)least((int)n, LONGEST),
		        *setting);
		if (nearest && difference <= (int)n / 3) fprintf(stderr, "; %s is the nearest", nearest);
		fputs(" (doc/environment.md)\n", stderr);
	}
}
