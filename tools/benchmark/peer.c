/* The peer: a Python process that does the same work in PyTorch when it is asked to, so that turns can alternate.
 * A question is a line "NUMBER CASE TIMES"; the answer "NUMBER SECONDS [HOW]" of one repetition, or "NUMBER
 * none". */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static struct {
	pid_t process;
	FILE *to, *from;
	char name[128], how[BENCH_HOW];
	long asked;
} peer;

/* The script: of the options, of the source tree if that is there, or the installed one. */
static const char *script(const struct bench_options *o)
{
	if (o->peer_script) return o->peer_script;
	return access(BENCH_PEER_SOURCE, R_OK) ? BENCH_PEER_INSTALLED : BENCH_PEER_SOURCE;
}

static void become_python(const char *python, const struct bench_options *o, int in, int out)
{
	char count[16], device[32] = "cpu";
	snprintf(count, sizeof count, "%d", o->threads);
	if (o->device.kind == SL_DEVICE_GPU) snprintf(device, sizeof device, "cuda:%d", o->device.index);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execlp(python, python, script(o), count, device, o->tf32 ? "tf32" : "float32", (char *)NULL);
	perror(python);
	_exit(127);
}

bool bench_peer_start(const char *python, const struct bench_options *options)
{
	int there[2], back[2];
	if (pipe(there) || pipe(back)) return false;
	signal(SIGPIPE, SIG_IGN);
	fflush(NULL);
	peer.process = fork();
	if (peer.process == 0) {
		close(there[1]);
		close(back[0]);
		become_python(python, options, there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	peer.to = fdopen(there[1], "w");
	peer.from = fdopen(back[0], "r");
	if (peer.process < 0 || !peer.to || !peer.from || !fgets(peer.name, sizeof peer.name, peer.from)) {
		bench_peer_stop();
		return false;
	}
	peer.name[strcspn(peer.name, "\n")] = '\0';
	return true;
}

const char *bench_peer_name(void)
{
	return peer.process > 0 ? peer.name : NULL;
}

/* Answers to what a process that failed has asked are skipped: numbers go up in each process from its own id. */
double bench_peer_run(const char *name, int64_t times)
{
	char line[128];
	if (peer.process <= 0) return NAN;
	if (!peer.asked) peer.asked = (long)getpid() * 100000;
	long number = ++peer.asked;
	if (fprintf(peer.to, "%ld %s %lld\n", number, name, (long long)times) < 0 || fflush(peer.to)) return NAN;
	while (fgets(line, sizeof line, peer.from)) {
		char *rest, *end;
		if (strtol(line, &rest, 10) != number) continue;
		double seconds = strtod(rest, &end);
		snprintf(peer.how, sizeof peer.how, "%.*s", (int)strcspn(end + (*end == ' '), "\n"),
		         end + (*end == ' '));
		return end == rest ? NAN : seconds;
	}
	return NAN;
}

const char *bench_peer_how(void)
{
	return peer.how;
}

void bench_peer_stop(void)
{
	if (peer.to) fclose(peer.to);
	if (peer.from) fclose(peer.from);
	if (peer.process > 0) waitpid(peer.process, NULL, 0);
	memset(&peer, 0, sizeof peer);
}
