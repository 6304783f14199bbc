/* --watch: a page of curves and machine use in one HTML file, without scripts and without a server.  It asks the browser
 * to load it again while training runs. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "training.h"

/* ---- curves as SVG ----------------------------------------------------------------------------------------------- */

enum { WIDTH = 560, HEIGHT = 240, LEFT = 62, RIGHT = 14, TOP = 34, BOTTOM = 36 };

struct curve {
	const char *name, *colour;
	const double *x, *y; /* with a step between two points, in doubles */
	int count, step;
};

struct chart {
	FILE *f;
	double first, last, high; /* of the axes; the lower end of y is 0 */
};

static double right_of(const struct chart *c, double x)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (x - c->first) / (c->last - c->first);
}

static double down_of(const struct chart *c, double y)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / c->high;
}

/* 1, 2 or 5 times a power of ten, so that at most six marks are needed. */
static double mark_distance(double length)
{
	double power = pow(10, floor(log10(length / 6)));
	return length / 6 <= power       ? power
	       : length / 6 <= 2 * power ? 2 * power
	       : length / 6 <= 5 * power ? 5 * power
	                                 : 10 * power;
}

static double highest(const struct curve *curves, int count)
{
	double high = 0;
	for (int c = 0; c < count; c++)
		for (int i = 0; i < curves[c].count; i++) {
			double y = curves[c].y[i * curves[c].step];
			if (isfinite(y) && y > high) high = y;
		}
	return high > 0 ? high : 1;
}

static void draw_axes(const struct chart *c, const char *title)
{
	double step = mark_distance(c->high);
	fprintf(c->f, "<text x=\"%d\" y=\"16\" class=\"title\">%s</text>\n", LEFT, title);
	for (int i = 0; i * step <= c->high * 1.0001; i++)
		fprintf(c->f,
		        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
		        "class=\"y\">%g</text>\n",
		        LEFT, WIDTH - RIGHT, down_of(c, i * step), down_of(c, i * step), LEFT - 6,
		        down_of(c, i * step) + 4, i * step);
	step = fmax(1, mark_distance(c->last - c->first));
	for (double x = ceil(c->first / step) * step; x <= c->last * 1.0001; x += step)
		fprintf(c->f, "<text x=\"%.1f\" y=\"%d\" class=\"x\">%g</text>\n", right_of(c, x), HEIGHT - BOTTOM + 16,
		        x);
	fprintf(c->f, "<text x=\"%d\" y=\"%d\" class=\"x\">epoch</text>\n", WIDTH / 2, HEIGHT - 4);
}

static void draw_curve(const struct chart *c, const struct curve *curve, int number)
{
	bool joined = false;
	int shown = 0;
	fprintf(c->f, "<path stroke=\"%s\" d=\"", curve->colour);
	for (int i = 0; i < curve->count; i++) {
		double x = curve->x[i * curve->step], y = curve->y[i * curve->step];
		bool there = isfinite(y);
		if (there) fprintf(c->f, "%c%.1f %.1f", joined ? 'L' : 'M', right_of(c, x), down_of(c, y));
		joined = there;
		shown += there;
	}
	fputs("\"/>\n", c->f);
	for (int i = 0; i < curve->count && shown <= 30; i++)
		if (isfinite(curve->y[i * curve->step]))
			fprintf(c->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
			        right_of(c, curve->x[i * curve->step]), down_of(c, curve->y[i * curve->step]),
			        curve->colour);
	fprintf(c->f, "<text x=\"%d\" y=\"28\" fill=\"%s\">%s</text>\n", LEFT + 150 * number, curve->colour,
	        curve->name);
}

static void draw_chart(FILE *f, const char *title, double last, const struct curve *curves, int count)
{
	struct chart c = {.f = f, .last = last, .high = highest(curves, count)};
	fprintf(f, "<svg viewBox=\"0 0 %d %d\">\n", WIDTH, HEIGHT);
	draw_axes(&c, title);
	for (int i = 0; i < count; i++) draw_curve(&c, &curves[i], i);
	fputs("</svg>\n", f);
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

enum { POINT = sizeof(struct drv_point) / sizeof(double), EPOCH = 4 };

/* Of each epoch: its number, loss, train accuracy, test accuracy. */
static double *epoch_values(const struct drv_training *t)
{
	double *values = malloc(((size_t)t->done + 1) * EPOCH * sizeof *values);
	for (int64_t i = 0; values && i < t->done; i++) {
		const struct drv_epoch *e = &t->epochs[i];
		double *v = values + i * EPOCH;
		v[0] = (double)(i + 1);
		v[1] = e->loss;
		v[2] = e->train_accuracy;
		v[3] = e->test_accuracy;
	}
	return values;
}

static void draw_charts(FILE *f, const struct drv_training *t, const double *epochs)
{
	const struct drv_point *p = t->live.points;
	int n = t->live.count, done = (int)t->done;
	double last = (double)t->options->epochs;
#define LIVE(name, colour, field)                                                                                      \
	{                                                                                                              \
		name, colour, &p->epoch, &p->field, n, POINT                                                           \
	}
/* clang-format off */
#define EPOCHS(name, colour, index) {name, colour, epochs, epochs + index, done, EPOCH}
	/* clang-format on */
	draw_chart(f, "Loss", last,
	           (struct curve[]){LIVE("epoch so far", "#9ecae1", loss), EPOCHS("train", "#1f77b4", 1)}, 2);
	draw_chart(f, "Accuracy", last, (struct curve[]){EPOCHS("train", "#bf00bf", 2), EPOCHS("test", "#2ca02c", 3)},
	           2);
	draw_chart(f, "Images a second", last, (struct curve[]){LIVE("", "#1f77b4", images_per_second)}, 1);
	draw_chart(f, "Processors' time (%)", last,
	           (struct curve[]){LIVE("this program", "#d62728", own_cpu), LIVE("all programs", "#7f7f7f", all_cpu)},
	           2);
	draw_chart(f, "Memory of tensors (MB)", last, (struct curve[]){LIVE("", "#8c564b", megabytes)}, 1);
	draw_chart(f, "Tasks in flight", last, (struct curve[]){LIVE("", "#ff7f0e", tasks)}, 1);
#undef LIVE
#undef EPOCHS
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void put_head(FILE *f, const struct drv_training *t, bool running)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n", f);
	if (running) fputs("<meta http-equiv=\"refresh\" content=\"2\">\n", f);
	fprintf(f, "<title>%s</title>\n<style>\n", t->program);
	fputs("body { font: 14px sans-serif; margin: 1em; color: #222; background: #fff }\n"
	      "div { display: flex; flex-wrap: wrap; gap: 1em }\n"
	      "svg { width: 560px; max-width: 100%; border: 1px solid #ddd; font-size: 12px }\n"
	      "line { stroke: #e4e4e4 } path { fill: none; stroke-width: 1.5 }\n"
	      ".title { font-weight: bold } .x { text-anchor: middle } .y { text-anchor: end }\n"
	      "td { padding-right: 1.5em }\n</style></head><body>\n",
	      f);
	fprintf(f, "<h1>%s</h1>\n", t->title);
}

static void put_state(FILE *f, const struct drv_training *t, bool running)
{
	const struct drv_point *p = t->live.count ? &t->live.points[t->live.count - 1] : NULL;
	char date[64] = "", name[SL_DEVICE_NAME_MAX];
	time_t now = time(NULL);
	struct tm local;
	if (localtime_r(&now, &local)) strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
	fprintf(f, "<p>%s, %s: %lld of %lld epochs are complete", date, running ? "running" : "ended",
	        (long long)t->done, (long long)t->options->epochs);
	if (running && p && p->epoch > (double)t->done)
		fprintf(f, ", %.0f %% of the next", 100 * (p->epoch - (double)t->done));
	fputs(". Devices:", f);
	for (int i = 0; i < t->common->ndevices; i++) fprintf(f, " %s", sl_device_name(t->common->devices[i], name));
	fputs(".</p>\n", f);
}

static void put_table(FILE *f, const struct drv_training *t)
{
	fputs("<table><tr><th>epoch<th>seconds<th>images/s<th>loss<th>train accuracy<th>test accuracy</tr>\n", f);
	for (int64_t i = t->done > 20 ? t->done - 20 : 0; i < t->done; i++) {
		const struct drv_epoch *e = &t->epochs[i];
		fprintf(f, "<tr><td>%lld<td>%.2f<td>%.0f<td>%.4f<td>%.4f<td>%.4f</tr>\n", (long long)i + 1, e->seconds,
		        (double)e->images / e->seconds, e->loss, e->train_accuracy, e->test_accuracy);
	}
	fputs("</table>\n</body></html>\n", f);
}

bool drv_watch_write(const struct drv_training *t, bool running)
{
	double *epochs = epoch_values(t);
	sl_file *file = epochs ? drv_file_begin(t->options->watch) : NULL;
	FILE *f = sl_file_stream(file);
	if (!epochs) drv_error("no memory for %s", t->options->watch);
	if (file) {
		put_head(f, t, running);
		put_state(f, t, running);
		fputs("<div>\n", f);
		draw_charts(f, t, epochs);
		fputs("</div>\n", f);
		put_table(f, t);
	}
	free(epochs);
	return file && drv_file_end(file, t->options->watch);
}
