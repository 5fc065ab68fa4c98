// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * First process of the guest: sets up two hosts, runs the applications of a run, saves its records.
 *
 * The guest's root is the host's file tree with the user's own rights. It reads and writes only
 * below $OUT: `net` (commands of /proc/fullpipe), `sysctl` (NAME VALUE), `ip0`, `ip1`, `tc`
 * (batches of ip and tc), `apps`, and it writes `records` and, when all is well, `done`.
 *
 * apps:  sink SIDE PORT RCVBUF CLAMP                         bytes; 0: the kernel's own
 *        send SIDE START FROM TO PORT CC BYTES STOP PACE     ns; BYTES 0: without end
 *        take SIDE PORT RCVBUF CLAMP                         for the flows of a class
 *        class SIDE PORT CC PACE FILE                        lines of START FROM TO BYTES
 *        PACE: bytes of payload per second at most; 0: not paced
 *        end NS PHASE DRAIN                                  ns
 *
 * Times are those of CLOCK_MONOTONIC, which is the same in both hosts.
 * Build: cc -O2 -static -o guest main.c flows.c brief.c
 */
#include "guest.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TICK 100000000LL /* a multiple of every tick: 100, 250, 300 (nearly) and 1000 a second */
/*
 * From boot to the run: a router has been up for long. CoDel's state begins with the time of the
 * boot, and forgets it after 16 intervals; PIE's first update comes half a second after its set-up.
 * The simulator's ticks count from the same set-up (SET_UP in crates/sim/src/aqm/linux_clock.rs).
 */
#define UPTIME 100000000000LL
/*
 * Timers of more than 63 ticks go off on every 8th, of more than 504 on every 64th, of more than
 * 4032 on every 512th. Jiffies begin 300 s below zero; this makes them a multiple of 512 when the
 * run begins, as the simulator's ticks are, with 100, 250, 300 and 1000 a second.
 */
#define WHEEL 5240000000LL

char chunk[CHUNK];
static const char *out;

static const char *path(const char *name)
{
	static char buffer[4096];

	snprintf(buffer, sizeof buffer, "%s/%s", out, name);
	return buffer;
}

/* Whoever dies, the run is over: the first process looks for the file. */
static void end_run(void)
{
	fflush(stderr);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	open(path("failed"), O_WRONLY | O_CREAT, 0600);
	_exit(1);
}

void die(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	end_run();
}

long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void sleep_until(long long ns)
{
	struct timespec t = {ns / 1000000000LL, ns % 1000000000LL};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) {
	}
}

char *text_of(const char *name)
{
	int f = open(path(name), O_RDONLY);
	struct stat s;
	char *text;
	ssize_t n, all = 0;

	if (f < 0 || fstat(f, &s))
		die(name);
	text = calloc(1, s.st_size + 1);
	while ((n = read(f, text + all, s.st_size - all)) > 0)
		all += n;
	close(f);
	return text;
}

static void write_to(const char *file, const char *text)
{
	int f = open(file, O_WRONLY);
	size_t n = strlen(text);

	if (f < 0 || write(f, text, n) != (ssize_t)n)
		die(file);
	close(f);
}

static void network(const char *commands)
{
	write_to("/proc/fullpipe", commands);
}

static void batch(const char *tool, const char *name)
{
	int status;
	pid_t p;
	struct stat s;

	if (stat(path(name), &s) || !s.st_size)
		return;
	p = fork();
	if (!p) {
		char file[4096];

		snprintf(file, sizeof file, "%s", path(name));
		execlp(tool, tool, "-batch", file, (char *)0);
		die(tool);
	}
	if (waitpid(p, &status, 0) != p)
		die(name);
	if (status) {
		/* The reason is in its own words, one line above. */
		fprintf(stderr, "guest: %s refuses a line of %s\n", tool, name);
		end_run();
	}
}

static void host(int side)
{
	char *text = text_of("sysctl"), *rest = text, *line;
	char command[16];

	snprintf(command, sizeof command, "host %d", side);
	network(command);
	batch("ip", side ? "ip1" : "ip0");
	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, ' '), file[256];

		if (!value)
			continue;
		*value++ = 0;
		snprintf(file, sizeof file, "/proc/sys/net/%s", line);
		/* Some belong to the first namespace only, and can be read elsewhere (6.12). */
		if (access(file, W_OK) == 0)
			write_to(file, value);
		else if (!side)
			die(file);
	}
	free(text);
}

/* Those of a host: receivers before the run, senders when its start is known. */
static void apps(int side, long long zero)
{
	char *text = text_of("apps"), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char from[64], to[64], cc[64], file[64];
		long long start, bytes, end, pace;
		int at, port, rcvbuf, clamp;

		if (zero && sscanf(line, "send %d %lld %63s %63s %d %63s %lld %lld %lld", &at,
				   &start, from, to, &port, cc, &bytes, &end, &pace) == 9 &&
		    at == side)
			sender(zero + start, from, to, port, cc, bytes, end ? zero + end : 0,
			       pace);
		if (zero && sscanf(line, "class %d %d %63s %lld %63s", &at, &port, cc, &pace,
				   file) == 5 &&
		    at == side)
			brief_senders(zero, port, cc, pace, file);
		if (!zero && sscanf(line, "sink %d %d %d %d", &at, &port, &rcvbuf, &clamp) == 4 &&
		    at == side)
			sink(port, rcvbuf, clamp);
		if (!zero && sscanf(line, "take %d %d %d %d", &at, &port, &rcvbuf, &clamp) == 4 &&
		    at == side)
			brief_receivers(port, rcvbuf, clamp);
	}
	free(text);
}

static void drain(int to)
{
	int from = open("/proc/fullpipe", O_RDONLY);
	ssize_t n;

	while ((n = read(from, chunk, sizeof chunk)) > 0)
		if (write(to, chunk, n) != n)
			die("records");
	close(from);
}

int main(void)
{
	int ready[2], go[2], records, clock;
	long long zero, end = 0, phase = 0, after = 0;
	char command[64], *text, *line, *rest;

	out = getenv("OUT");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (!out || mount("proc", "/proc", "proc", 0, 0))
		die("mount /proc");
	text = text_of("net");
	network(text);
	free(text);
	if (pipe(ready) || pipe(go))
		die("pipe");
	host(0);
	batch("tc", "tc");
	if (!fork()) {
		if (unshare(CLONE_NEWNET))
			die("unshare");
		host(1);
		apps(1, 0);
		if (write(ready[1], "r", 1) != 1 || read(go[0], &zero, sizeof zero) != sizeof zero)
			die("pipe");
		apps(1, zero);
		for (;;)
			pause();
	}
	/* So that the end of the far host is one of its pipe. */
	close(ready[1]);
	apps(0, 0);
	if (read(ready[0], command, 1) != 1)
		die("the far host");
	rest = text = text_of("apps");
	while ((line = strsep(&rest, "\n")))
		sscanf(line, "end %lld %lld %lld", &end, &phase, &after);
	zero = ((now_ns() + UPTIME) / TICK + 2) * TICK + WHEEL + phase;
	snprintf(command, sizeof command, "go %lld", zero);
	network(command);
	if (write(go[1], &zero, sizeof zero) != sizeof zero)
		die("pipe");
	apps(0, zero);
	records = open(path("records"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (records < 0)
		die("records");
	clock = open(path("time"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (long long t = zero; t < zero + end + after; t += 50000000LL) {
		sleep_until(t);
		if (!access(path("failed"), F_OK))
			return reboot(RB_POWER_OFF);
		drain(records);
		/* Whoever started this kernel sees that its time goes on. */
		snprintf(command, sizeof command, "%020lld", t - zero);
		if (clock < 0 || pwrite(clock, command, 20, 0) != 20)
			die("time");
	}
	sleep_until(zero + end + after);
	network("finish");
	drain(records);
	close(records);
	records = open(path("done"), O_WRONLY | O_CREAT, 0600);
	if (records < 0)
		die("done");
	close(records);
	sync();
	return reboot(RB_POWER_OFF);
}
