// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Lasting flows: a process for each sender and each receiver. */
#include "guest.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/utsname.h>

struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (host)
		inet_aton(host, &a.sin_addr);
	return a;
}

int listening(int port, int rcvbuf, int clamp)
{
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = address(0, port);

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (rcvbuf && setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, sizeof rcvbuf))
		die("SO_RCVBUFFORCE");
	/* The window itself, whatever memory its packets take. */
	if (clamp && setsockopt(s, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof clamp))
		die("TCP_WINDOW_CLAMP");
	if (bind(s, (void *)&a, sizeof a) || listen(s, 4096))
		die("listen");
	return s;
}

/*
 * Since 6.6 a kernel that sees the memory of its first packets forgets the window that was set, and
 * offers what the buffer holds (tcp_measure_rcv_mss). To be called after what was read.
 */
void keep_window(int s, int clamp)
{
	static int forgets = -1;
	struct utsname name;
	int major, minor, now;
	socklen_t size = sizeof now;

	if (forgets < 0)
		forgets = !uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
			  (major > 6 || (major == 6 && minor >= 6));
	if (clamp && forgets && !getsockopt(s, IPPROTO_TCP, TCP_WINDOW_CLAMP, &now, &size) &&
	    now > clamp && setsockopt(s, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof clamp))
		die("TCP_WINDOW_CLAMP");
}

/* A socket of a sender, from this address. */
int sending(const char *from, const char *cc, long long pace, int flags)
{
	struct sockaddr_in a = address(from, 0);
	int s = socket(AF_INET, SOCK_STREAM | flags, 0);

	if (s < 0)
		die("socket");
	if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc))) {
		char what[64];

		snprintf(what, sizeof what, "the kernel knows no congestion module `%s`", cc);
		die(what);
	}
	if (pace) {
		unsigned long most = pace;

		if (setsockopt(s, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most))
			die("SO_MAX_PACING_RATE");
	}
	if (bind(s, (void *)&a, sizeof a))
		die("bind");
	return s;
}

void sink(int port, int rcvbuf, int clamp)
{
	int s = listening(port, rcvbuf, clamp), c;

	/* Listening before any sender starts. */
	if (fork())
		return;
	c = accept(s, 0, 0);
	if (clamp && recv(c, chunk, 1, MSG_PEEK) > 0)
		keep_window(c, clamp);
	/* The kernel's own loop takes data off the socket as it arrives: no switch to this process
	   per packet. */
	while (recv(c, chunk, CHUNK, MSG_TRUNC | MSG_WAITALL) > 0) {
	}
	for (;;)
		pause();
}

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

void sender(long long start, const char *from, const char *to, int port, const char *cc,
	    long long bytes, long long end, long long pace)
{
	struct sockaddr_in b = address(to, port);
	long long left = bytes;
	int s;

	if (fork())
		return;
	prctl(PR_SET_TIMERSLACK, 1UL);
	sleep_until(start);
	s = sending(from, cc, pace, 0);
	if (connect(s, (void *)&b, sizeof b))
		for (;;)
			pause(); /* no answer within the run */
	if (end) {
		struct sigaction action = {.sa_handler = stop};
		long long wait = (end - now_ns()) / 1000;
		struct itimerval timer = {{0, 0}, {wait / 1000000, wait % 1000000}};

		sigaction(SIGALRM, &action, 0);
		if (wait <= 0)
			stopped = 1;
		else
			setitimer(ITIMER_REAL, &timer, 0);
	}
	while (!stopped && (!bytes || left > 0)) {
		size_t n = !bytes || left > (long long)CHUNK ? CHUNK : (size_t)left;
		ssize_t sent = send(s, chunk, n, 0);

		if (sent < 0 && errno != EINTR)
			break;
		left -= sent > 0 ? sent : 0;
	}
	/* The connection stays open: a FIN would be one more segment. */
	for (;;)
		pause();
}
