/* Limits run-ahead to about a second, so that a run ends soon after an interruption. */
#include "common.h"

/* Steps that take about a second, at the recent speed: at least one. */
static int64_t room(const struct drv_pace *p)
{
	double steps = p->mean > 0 ? 1 / p->mean : 1;
	return steps < DRV_MOST_AHEAD - 1 ? 1 + (int64_t)steps : DRV_MOST_AHEAD;
}

/* Leaves errors pending for the caller. */
static void wait_for(sl_tensor *value)
{
	char text[2048];
	enum sl_status status = sl_wait(value);
	if (status == SL_OK) return;
	snprintf(text, sizeof text, "%s", sl_error_message());
	sl_error_raise_at(NULL, status, text);
}

static void wait_for_oldest(struct drv_pace *p)
{
	sl_tensor **oldest = &p->values[p->computed++ % DRV_MOST_AHEAD];
	wait_for(*oldest);
	sl_release(*oldest);
	*oldest = NULL;
	double now = drv_now(), took = now - p->last;
	if (p->last > 0) p->mean += (took - p->mean) / 4;
	p->last = now;
}

/* A step is issued that computes this value: waits for earlier ones if they are too many. */
void drv_pace(struct drv_pace *p, sl_tensor *value)
{
	if (!value || sl_is_simulated()) return;
	while (p->issued - p->computed >= room(p)) wait_for_oldest(p);
	p->values[p->issued++ % DRV_MOST_AHEAD] = sl_retain(value);
}

void drv_pace_end(struct drv_pace *p)
{
	for (int i = 0; i < DRV_MOST_AHEAD; i++) sl_release(p->values[i]);
	*p = (struct drv_pace){0};
}
