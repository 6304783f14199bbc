/* Plots of curves, by gnuplot: in files, as text, in a window. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

extern char **environ;

static bool is_text(const char *path)
{
	return strcmp(path, DRV_PLOT_TEXT) == 0;
}

static bool is_window(const char *path)
{
	return strcmp(path, DRV_PLOT_WINDOW) == 0;
}

static const char *extension(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : "";
}

/* Whether the name says how to draw: see DRV_PLOT_PATHS. */
bool drv_plot_path(const char *path)
{
	return is_text(path) || is_window(path) || strcmp(extension(path), "svg") == 0 ||
	       strcmp(extension(path), "png") == 0;
}

/* ---- gnuplot ---------------------------------------------------------------------------------------------------- */

/* gnuplot's first arguments.  In the locale C it would complain about UTF-8. */
#define GNUPLOT "env", "LC_ALL=C.UTF-8", "gnuplot"

/* Starts gnuplot in a separate process group: it is to finish the picture when SIGINT ends the training.  in, out: its
 * standard input and output; -1: none, ours. */
static bool start_gnuplot(pid_t *pid, char *const *arguments, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attributes)) return false;
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	else posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	bool ok = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environ) == 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return ok;
}

/* Runs gnuplot to its end.  Returns its exit status, -1 if there was none. */
static int gnuplot(char *const *arguments, FILE *in, FILE *out)
{
	pid_t pid;
	int status;
	if (!start_gnuplot(&pid, arguments, in ? fileno(in) : -1, out ? fileno(out) : -1)) return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The kind of window that gnuplot opens by default goes to text; returns its exit status. */
static int default_terminal(char *text, int size)
{
	char *const ask[] = {GNUPLOT, "-e", "set print '-'; print GPVAL_TERM", NULL};
	FILE *said = tmpfile();
	int status = said ? gnuplot(ask, NULL, said) : -1;
	*text = '\0';
	if (said) {
		rewind(said);
		if (!fgets(text, size, said)) *text = '\0';
		text[strcspn(text, "\n")] = '\0';
		fclose(said);
	}
	return status;
}

/* Whether a picture can be drawn, found out before the work is done; says why not. */
bool drv_plot_ready(const char *path)
{
	char terminal[64];
	if (!is_text(path) && !is_window(path) && !drv_writable(path)) return false;
	int status = default_terminal(terminal, sizeof terminal);
	if (status != 0) {
		drv_error("drawing needs gnuplot, which %s (Debian's package is gnuplot-nox)",
		          status < 0 || status == 127 ? "is not there" : "does not work");
		return false;
	}
	bool window = *terminal && strcmp(terminal, "unknown") != 0 && strcmp(terminal, "dumb") != 0;
	if (!is_window(path) || window) return true;
	drv_error(
	        "gnuplot can open no window here: it needs a display, and Debian's package gnuplot-qt or gnuplot-x11");
	return false;
}

/* ---- scripts ---------------------------------------------------------------------------------------------------- */

enum { WIDTH = 640, HEIGHT = 440, ROWS = 20, MOST_COLUMNS = 100 };

/* Text within double quotes of gnuplot, which would run what stands between backquotes. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (strchr("\"\\`\n", *text)) fprintf(f, "\\%03o", (unsigned char)*text);
		else fputc(*text, f);
	}
	fputc('"', f);
}

static void put_number(FILE *f, double value, char after)
{
	if (isfinite(value)) fprintf(f, "%.9g%c", value, after);
	else fprintf(f, "?%c", after);
}

static bool has_points(const struct drv_curve *c)
{
	for (int i = 0; i < c->points; i++)
		if (isfinite(c->x[i]) && isfinite(c->y[i])) return true;
	return false;
}

static void put_data(FILE *f, const struct drv_curve *curve, int number)
{
	fprintf(f, "$curve%d << END\n", number);
	for (int i = 0; i < curve->points; i++) {
		put_number(f, curve->x[i], ' ');
		put_number(f, curve->y[i], '\n');
	}
	fputs("END\n", f);
}

static void put_curve(FILE *f, const struct drv_curve *curve, int number)
{
	static const char *const colours[] = {"#1f77b4", "#bf00bf", "#2ca02c", "#ff7f0e",
	                                      "#d62728", "#8c564b", "#7f7f7f", "#17becf"};
	static const int dashes[] = {1, 2, 4};
	fputs(number ? ", " : "plot ", f);
	if (has_points(curve)) fprintf(f, "$curve%d using 1:2", number);
	else fputs("NaN", f); /* its name is in the key nevertheless */
	fprintf(f, " with linespoints lc rgb '%s' dt %d lw 2 pt %d ps 0.5 title ", colours[curve->colour % 8],
	        dashes[curve->dash % 3], 5 + 2 * (number % 5));
	put_quoted(f, curve->name);
}

static void put_panel(FILE *f, const struct drv_panel *p, bool text)
{
	bool points = false;
	for (int c = 0; c < p->count; c++) {
		put_data(f, &p->curves[c], c);
		points |= has_points(&p->curves[c]);
	}
	fputs("set title ", f);
	put_quoted(f, p->title);
	fputs(" noenhanced\nset xlabel ", f);
	put_quoted(f, p->xlabel);
	if (!text) fputs(".\"\\n \"", f); /* a line between it and the key */
	fprintf(f, "\nset xrange [%.9g:%.9g]\nset yrange [0:%s]\n", p->first, p->last, points ? "*" : "1");
	if (p->counted) fprintf(f, "set xtics %d\n", 1 + (int)(p->last - p->first) / 10);
	else fputs("set xtics autofreq\n", f);
	for (int c = 0; c < p->count; c++) put_curve(f, &p->curves[c], c);
	fputc('\n', f);
}

static int text_columns(FILE *text)
{
	struct winsize size;
	if (ioctl(fileno(text), TIOCGWINSZ, &size) || size.ws_col == 0) return 79;
	return size.ws_col > MOST_COLUMNS ? MOST_COLUMNS : size.ws_col - 1;
}

static void put_terminal(FILE *f, const struct drv_figure *g, FILE *text)
{
	int rows = (g->count + g->columns - 1) / g->columns, width = WIDTH * g->columns, height = HEIGHT * rows;
	const char *no_color = getenv("NO_COLOR");
	if (is_text(g->path))
		fprintf(f, "set terminal dumb size %d,%d %s\n", text_columns(text), ROWS * g->count,
		        isatty(fileno(text)) && !(no_color && *no_color) ? "ansi" : "mono");
	else if (strcmp(extension(g->path), "svg") == 0)
		fprintf(f, "set terminal svg size %d,%d dynamic background '#ffffff'\n", width, height);
	else if (!is_window(g->path)) /* the plain one knows no dashes */
		fprintf(f,
		        "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) { set terminal pngcairo size %d,%d } "
		        "else { set terminal png size %d,%d }\n",
		        width, height, width, height);
}

static void put_script(FILE *f, const struct drv_figure *g, const char *output, FILE *text)
{
	int columns = is_text(g->path) ? 1 : g->columns, rows = (g->count + columns - 1) / columns;
	put_terminal(f, g, text);
	if (output) {
		fputs("set output ", f);
		put_quoted(f, output);
	}
	fputs("\nset encoding utf8\nset grid\nset key outside bottom center horizontal noenhanced\n"
	      "set datafile missing \"?\"\n",
	      f);
	if (g->count > 1) fprintf(f, "set multiplot layout %d,%d\n", rows, columns);
	for (int i = 0; i < g->count; i++) put_panel(f, &g->panels[i], is_text(g->path));
	if (g->count > 1) fputs("unset multiplot\n", f);
}

/* ---- into files ------------------------------------------------------------------------------------------------- */

static char *const run_script[] = {GNUPLOT, "-", NULL};

/* Runs the script of a figure. */
static bool draw(const struct drv_figure *g, const char *output, FILE *text, FILE *out)
{
	FILE *script = tmpfile();
	if (!script) return false;
	put_script(script, g, output, text);
	rewind(script);
	bool ok = !ferror(script) && gnuplot(run_script, script, out) == 0;
	fclose(script);
	return ok;
}

/* The picture is replaced as a whole: who looks at it while it grows never sees half of one. */
static bool draw_file(const struct drv_figure *g)
{
	sl_file *file = drv_file_begin(g->path);
	if (file && draw(g, sl_file_name(file), NULL, NULL)) return drv_file_end(file, g->path);
	sl_file_discard(file);
	return false;
}

/* ---- as text ---------------------------------------------------------------------------------------------------- */

/* The picture at the foot of a terminal, which the next line or picture replaces. */
static struct {
	FILE *out;
	int rows;
} standing;

/* Takes back the picture that stands at the foot of the terminal, if there is one: something else will be printed. */
void drv_plot_withdraw(void)
{
	if (standing.rows) fprintf(standing.out, "\r\033[%dA\033[J", standing.rows);
	standing.rows = 0;
}

static int copy_text(FILE *from, FILE *to)
{
	int c, rows = 0;
	while ((c = fgetc(from)) != EOF) {
		if (c == '\f') continue; /* gnuplot begins pages with it */
		fputc(c, to);
		rows += c == '\n';
	}
	return fflush(to) ? -1 : rows;
}

static bool draw_text(const struct drv_figure *g, FILE *text)
{
	FILE *drawn = tmpfile();
	if (!drawn) return false;
	bool ok = draw(g, NULL, text, drawn);
	rewind(drawn);
	drv_plot_withdraw();
	int rows = ok ? copy_text(drawn, text) : -1;
	fclose(drawn);
	if (rows > 0 && isatty(fileno(text))) {
		standing.out = text;
		standing.rows = rows;
	}
	return rows >= 0;
}

/* ---- in a window ------------------------------------------------------------------------------------------------ */

/* The gnuplot that has the window; it keeps it open after our end. */
static FILE *open_window(void)
{
	static FILE *window;
	char *const run[] = {GNUPLOT, "-persist", "-", NULL};
	int ends[2];
	pid_t pid;
	if (window || pipe2(ends, O_CLOEXEC)) return window;
	signal(SIGPIPE, SIG_IGN); /* who closes the window does not want the training to end */
	if (start_gnuplot(&pid, run, ends[0], -1)) window = fdopen(ends[1], "w");
	close(ends[0]);
	return window;
}

static bool draw_window(const struct drv_figure *g)
{
	FILE *window = open_window();
	if (!window) return false;
	put_script(window, g, NULL, NULL);
	fflush(window);
	clearerr(window);
	return true;
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

/* Whether pictures can follow each other while one looks on: all but text that is not on a terminal. */
bool drv_plot_is_live(const char *path, FILE *text)
{
	return !is_text(path) || isatty(fileno(text));
}

/* Draws the figure; as text, on `text`. */
bool drv_plot_write(const struct drv_figure *g, FILE *text)
{
	bool ok = is_text(g->path) ? draw_text(g, text) : is_window(g->path) ? draw_window(g) : draw_file(g);
	if (!ok) drv_error("cannot draw %s", g->path);
	return ok;
}
