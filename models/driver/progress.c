/* The progress of an epoch, as a line on a terminal. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common.h"

static const double INTERVAL = 0.1; /* seconds between two drawings */

static bool is_terminal(void)
{
	const char *term = getenv("TERM");
	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static int columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
	return 80;
}

/* Begins a line of progress towards total; it stays invisible if standard error is not a terminal. */
void drv_progress_start(struct drv_progress *p, const struct drv_options *o, const char *label, int64_t total)
{
	const char *no_color = getenv("NO_COLOR");
	*p = (struct drv_progress){.total = total, .start = drv_now(), .on = !o->quiet && is_terminal()};
	p->colour = p->on && !(no_color && *no_color);
	p->drawn = p->start;
	snprintf(p->label, sizeof p->label, "%s", label);
}

/* Whether it is time to draw again. */
bool drv_progress_due(const struct drv_progress *p)
{
	return p->on && drv_now() - p->drawn >= INTERVAL;
}

static void draw_bar(const struct drv_progress *p, double part, int width)
{
	int full = (int)(part * width);
	fputs(p->colour ? " [\033[32m" : " [", stderr);
	for (int i = 0; i < width; i++) fputc(i < full ? '=' : i == full ? '>' : ' ', stderr);
	fputs(p->colour ? "\033[0m]" : "]", stderr);
}

/* Shows the progress, the speed, the mean loss so far, and the time left. */
void drv_progress_draw(struct drv_progress *p, int64_t done, double loss)
{
	if (!p->on || done <= 0) return;
	p->drawn = drv_now();
	double part = done < p->total ? (double)done / (double)p->total : 1;
	double rate = (double)done / (p->drawn - p->start);
	char text[120];
	int n = snprintf(text, sizeof text, " %3.0f%%  %.0f images/s  loss %.3f  %.0f s left", 100 * part, rate, loss,
	                 (double)(p->total - done) / rate);
	int room = columns() - 1 - (int)strlen(p->label); /* a line that wraps could not be drawn over */
	int width = room - n - 3;
	fprintf(stderr, "\r%.*s", columns() - 1, p->label);
	if (width >= 8) draw_bar(p, part, width < 30 ? width : 30);
	fprintf(stderr, "%.*s\033[K", room > 0 ? room : 0, text);
}

/* Clears the line. */
void drv_progress_end(struct drv_progress *p)
{
	if (p->on) fputs("\r\033[K", stderr);
	p->on = false;
}
