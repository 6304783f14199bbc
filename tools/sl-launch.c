/* sl-launch: starts several processes of a program, which train together, and waits for all. */
#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "launch_cores.h"

enum { MAX_RANKS = 1024, ERROR = 1, USAGE = 2, NO_PROGRAM = 127 };
/* Seconds between asking a process to end and ending it: after a failure; after a signal, when it may write a
 * checkpoint. */
static const double last_words = 3, last_checkpoint = 60;

struct options {
	int ranks, restarts;
	bool bind, show;
	char **command;
};

/* The output of a process, cut into lines. */
struct stream {
	int fd; /* -1: at its end */
	FILE *to;
	char line[4096];
	size_t length;
};

struct process {
	pid_t id;    /* 0: it has ended */
	pid_t group; /* its children are in it, too */
	bool stopped;
	struct stream streams[2];
};

static struct process processes[MAX_RANKS];
static volatile sig_atomic_t interrupted, interruptions;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int complain(const char *what)
{
	fprintf(stderr, "sl-launch: %s: %s\n", what, strerror(errno));
	return ERROR;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* A port of the loopback interface, held without listening: no other process is given it, and rank 0 may listen on it. */
static int reserve_port(int *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof a;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &length)) {
		close(fd);
		return -1;
	}
	*port = ntohs(a.sin_port);
	return fd;
}

static void put_number(const char *name, int value)
{
	char text[32];
	snprintf(text, sizeof text, "%d", value);
	setenv(name, text, 1);
}

static void make_secret(void)
{
	unsigned char bytes[16];
	char text[2 * sizeof bytes + 1] = "";
	if (getenv("SL_DIST_SECRET") || getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return;
	for (size_t i = 0; i < sizeof bytes; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	setenv("SL_DIST_SECRET", text, 1);
}

/* One of them may read what this process is given, unless that is a terminal, which stops who reads from the
 * background. */
static void choose_input(int rank)
{
	int nothing = rank == 0 && !isatty(STDIN_FILENO) ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

/* told: receives why the program could not be started. */
static void become(const struct options *o, int rank, int out, int error, int told, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(ERROR);
	setpgid(0, 0);
	choose_input(rank);
	dup2(out, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	put_number("RANK", rank);
	put_number("LOCAL_RANK", rank);
	if (o->bind) launch_bind(rank, o->ranks);
	execvp(o->command[0], o->command);
	if (write(told, &errno, sizeof errno) < 0) complain(o->command[0]);
	_exit(NO_PROGRAM);
}

static void close_both(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* 0, or the error. */
static int start_one(const struct options *o, int rank)
{
	int out[2], error[2], told[2], why = 0;
	pid_t parent = getpid();
	if (pipe2(out, O_CLOEXEC)) return errno;
	if (pipe2(error, O_CLOEXEC)) return why = errno, close_both(out), why;
	if (pipe2(told, O_CLOEXEC)) return why = errno, close_both(out), close_both(error), why;
	pid_t id = fork();
	if (id == 0) become(o, rank, out[1], error[1], told[1], parent);
	if (id < 0) why = errno;
	close(out[1]);
	close(error[1]);
	close(told[1]);
	if (id > 0 && read(told[0], &why, sizeof why) > 0) waitpid(id, NULL, 0);
	close(told[0]);
	if (why) return close(out[0]), close(error[0]), why;
	processes[rank] = (struct process){
	        .id = id, .group = id, .streams = {{.fd = out[0], .to = stdout}, {.fd = error[0], .to = stderr}}};
	return 0;
}

/* ---- when this process is killed --------------------------------------------------------------------------------- */

static void kill_group(pid_t group)
{
	if (group) kill(-group, SIGKILL);
}

/* Waits for the end of this process; kills the ranks' children unless it has received the message that all is over. */
static void guard(int from)
{
	static pid_t groups[MAX_RANKS];
	int n = 0;
	setpgid(0, 0);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) close(fd);
	for (pid_t id; n < MAX_RANKS && read(from, &id, sizeof id) == sizeof id; groups[n++] = id)
		if (!id) _exit(0);
	while (n--) kill_group(groups[n]);
	_exit(0);
}

struct guard {
	pid_t id;
	int fd; /* where to tell it of processes; -1: there is none, and nothing is lost but that */
};

static struct guard start_guard(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC)) return (struct guard){.fd = -1};
	struct guard g = {.id = fork(), .fd = ends[1]};
	if (g.id == 0) {
		close(ends[1]);
		guard(ends[0]);
	}
	close(ends[0]);
	if (g.id > 0) return g;
	close(ends[1]);
	return (struct guard){.fd = -1};
}

static void tell_guard(struct guard g, pid_t id)
{
	if (g.fd >= 0 && write(g.fd, &id, sizeof id) < 0) complain("the guard process");
}

static void end_guard(struct guard g)
{
	tell_guard(g, 0);
	if (g.fd < 0) return;
	close(g.fd);
	waitpid(g.id, NULL, 0);
}

/* ---- their output ------------------------------------------------------------------------------------------------ */

static void print_line(struct stream *s, int rank)
{
	fprintf(s->to, "[%d] ", rank);
	fwrite(s->line, 1, s->length, s->to);
	putc('\n', s->to);
	fflush(s->to);
	s->length = 0;
}

static void read_some(struct stream *s, int rank)
{
	char text[4096];
	ssize_t n = read(s->fd, text, sizeof text);
	if (n < 0 && errno == EINTR) return;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] != '\n') s->line[s->length++] = text[i];
		if (text[i] == '\n' || s->length == sizeof s->line) print_line(s, rank);
	}
	if (n > 0) return;
	if (s->length) print_line(s, rank);
	close(s->fd);
	s->fd = -1;
}

static void listen_to_all(int ranks)
{
	static struct pollfd fds[2 * MAX_RANKS];
	unsigned count = 2 * (unsigned)ranks; /* gcc warns of a negative number (-flto) */
	for (unsigned i = 0; i < count; i++) fds[i] = (struct pollfd){processes[i / 2].streams[i % 2].fd, POLLIN, 0};
	if (poll(fds, count, 100) <= 0) return;
	for (int i = 0; i < 2 * ranks; i++)
		if (fds[i].fd >= 0 && fds[i].revents) read_some(&processes[i / 2].streams[i % 2], i / 2);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void signal_all(int ranks, int number)
{
	for (int r = 0; r < ranks; r++)
		if (processes[r].id) kill(-processes[r].id, number);
}

/* The first that ends badly is reported: the others may fail because of it.  A signal that nobody sent from here is a
 * cause of its own, whoever is seen first. */
static void report(int rank, int status, bool failed, bool asked)
{
	if (WIFSIGNALED(status) && !asked)
		fprintf(stderr, "sl-launch: rank %d was ended by signal %d (%s)\n", rank, WTERMSIG(status),
		        strsignal(WTERMSIG(status)));
	else if (!WIFSIGNALED(status) && status && !failed)
		fprintf(stderr, "sl-launch: rank %d ended with status %d\n", rank, WEXITSTATUS(status));
}

/* Whether a process has ended now; notes whether it is stopped. */
static bool has_ended(struct process *p, int *status)
{
	pid_t id = p->id ? waitpid(p->id, status, WNOHANG | WUNTRACED | WCONTINUED) : 0;
	if (!id || id != p->id) return false;
	p->stopped = WIFSTOPPED(*status);
	if (p->stopped || WIFCONTINUED(*status)) return false;
	p->id = 0;
	return true;
}

/* Some ranks have ended and the others were stopped: the job cannot continue, which is reported once. */
static bool all_stand(int ranks, bool failed)
{
	int ended = 0, left = 0, last = 0;
	for (int r = 0; r < ranks; r++) {
		if (processes[r].id && !processes[r].stopped) return false;
		if (processes[r].id) last = r;
		ended += !processes[r].id;
		left += processes[r].id != 0;
	}
	if (!ended || !left) return false;
	if (!failed) fprintf(stderr, "sl-launch: rank %d was stopped, and others have ended\n", last);
	return true;
}

/* Looks who has ended; true if one of them badly.  asked: they were asked to end. */
static bool collect(int ranks, bool failed, bool asked, int *left)
{
	int status;
	*left = 0;
	for (int r = 0; r < ranks; r++) {
		if (has_ended(&processes[r], &status)) {
			report(r, status, failed, asked);
			failed |= status != 0;
		}
		*left += processes[r].id != 0;
	}
	return failed;
}

/* How long the others get to find out for themselves. */
static double grace(void)
{
	const char *text = getenv("SL_DIST_TIMEOUT");
	double seconds = text ? atof(text) : 10;
	return (seconds > 0 ? seconds : 10) + last_words;
}

static bool is_silent(int ranks)
{
	for (int r = 0; r < ranks; r++)
		if (processes[r].streams[0].fd >= 0 || processes[r].streams[1].fd >= 0) return false;
	return true;
}

/* Until all have ended. */
static int attend(int ranks)
{
	double failed_at = 0, asked_at = 0;
	bool failed = false;
	int left = ranks;
	while (left) {
		listen_to_all(ranks);
		failed = collect(ranks, failed, asked_at > 0, &left);
		failed = all_stand(ranks, failed) || failed || interrupted;
		if (failed && !failed_at) failed_at = now();
		if (failed && !asked_at && (interrupted || now() > failed_at + grace())) {
			signal_all(ranks, interrupted ? interrupted : SIGTERM);
			asked_at = now();
		}
		double patience = interruptions == 1 ? last_checkpoint : interruptions ? 0 : last_words;
		if (asked_at && now() > asked_at + patience) signal_all(ranks, SIGKILL);
	}
	for (int r = 0; failed && r < ranks; r++) kill_group(processes[r].group);
	for (double end = now() + last_words; !is_silent(ranks) && now() < end;) listen_to_all(ranks);
	return failed ? ERROR : 0;
}

static void close_all(int ranks)
{
	for (int i = 0; i < 2 * ranks; i++)
		if (processes[i / 2].streams[i % 2].fd >= 0) close(processes[i / 2].streams[i % 2].fd);
}

/* All of them; 0, or the error. */
static int start_all(const struct options *o, struct guard guardian, int *started)
{
	int why = 0;
	for (*started = 0; *started < o->ranks && !(why = start_one(o, *started)); ++*started)
		tell_guard(guardian, processes[*started].id);
	return why;
}

static int run_once(const struct options *o)
{
	int port, fd = reserve_port(&port), started;
	if (fd < 0) return complain("no port");
	setenv("SL_DIST", "tcp", 0);
	setenv("STARPU_SILENT", "1", 0); /* it warns of processes that have one core */
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	put_number("MASTER_PORT", port);
	put_number("WORLD_SIZE", o->ranks);
	make_secret();
	struct guard guardian = start_guard();
	int why = start_all(o, guardian, &started);
	if (why) signal_all(started, SIGKILL);
	int status = attend(started);
	end_guard(guardian);
	close_all(started);
	close(fd);
	if (!why) return status;
	errno = why;
	complain(o->command[0]);
	return NO_PROGRAM;
}

static int run(const struct options *o)
{
	int status = ERROR;
	for (int i = 0; status && status != NO_PROGRAM && i <= o->restarts && !interrupted; i++) {
		if (i) fprintf(stderr, "sl-launch: restart %d of %d\n", i, o->restarts);
		status = run_once(o);
	}
	return interrupted ? 128 + interrupted : status;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_RESTARTS = 0x100, KEY_NO_BIND, KEY_SHOW_CPUS };

static int number(struct argp_state *state, const char *name, const char *text, int low, int high)
{
	char *end;
	long v = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || v < low || v > high)
		argp_error(state, "%s: \"%s\" is not a number from %d to %d", name, text, low, high);
	return (int)v;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case 'n': o->ranks = number(state, "--ranks", arg, 1, MAX_RANKS); return 0;
	case KEY_RESTARTS: o->restarts = number(state, "--restarts", arg, 0, 1000000); return 0;
	case KEY_NO_BIND: o->bind = false; return 0;
	case KEY_SHOW_CPUS: o->show = true; return 0;
	case ARGP_KEY_ARG:
		o->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (!o->show) argp_error(state, "no program is given");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
        {"ranks", 'n', "N", 0, "Start N processes (default: 2)", 1},
        {"restarts", KEY_RESTARTS, "N", 0, "Start all processes again, up to N times, after one has failed", 1},
        {"no-bind", KEY_NO_BIND, NULL, 0, "Let every process use all cores, instead of dividing them", 1},
        {"show-cpus", KEY_SHOW_CPUS, NULL, 0, "Print which CPUs (hardware threads) each process would get, and end", 1},
        {0},
};

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "PROGRAM [ARGUMENT...]",
        .doc = "Starts a program as several processes on this machine that train together.\v"
               "Each line that they print begins with the rank of its process; rank 0 reads the standard input.  When "
               "one process fails, the others get "
               "SL_DIST_TIMEOUT seconds to report that, and are killed then.  With --restarts, a program that writes "
               "checkpoints should resume from the last one by itself.  SIGINT, SIGTERM and SIGHUP are passed on; "
               "processes "
               "that have not ended a minute later, or at a second signal, are killed.\n\n"
               "Example:\n"
               "  sl-launch -n 4 ./program\n\n"
               "Exit status: 0 if all went well, 1 if a process failed, 2 if the command line is wrong, 127 if the "
               "program "
               "cannot be started, 128 and its number after a signal.",
};

static void note(int number_of_signal)
{
	interrupted = number_of_signal;
	interruptions++;
}

int main(int argc, char **argv)
{
	struct options o = {.ranks = 2, .bind = true};
	/* Assigned: our symbols are hidden, so argp would not see a definition. */
	argp_program_version = "sl-launch (Starling) " PACKAGE_VERSION;
	argp_err_exit_status = USAGE;
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o)) return USAGE;
	if (o.show) return launch_show(o.ranks) ? 0 : ERROR;
	struct sigaction action = {.sa_handler = note};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN) sigaction(SIGHUP, &action, NULL); /* nohup ignores it */
	return run(&o);
}
