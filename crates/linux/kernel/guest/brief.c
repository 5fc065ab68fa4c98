// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* Classes of short flows: one process sends those of a class and one receives them, each flow over
   a socket of its own. Connections stay open: a FIN would be one more segment. */
#include "guest.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#define EVENTS 64

static void many_files(void)
{
	struct rlimit most = {1 << 20, 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &most))
		die("RLIMIT_NOFILE");
}

static void watch(int poll, int fd, unsigned events, void *what)
{
	struct epoll_event e = {.events = events, .data = {.ptr = what}};

	if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e))
		die("epoll_ctl");
}

static int waited(int poll, struct epoll_event *events)
{
	int n;

	do
		n = epoll_wait(poll, events, EVENTS, -1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		die("epoll_wait");
	return n;
}

void brief_receivers(int port, int rcvbuf, int clamp)
{
	int s = listening(port, rcvbuf, clamp), poll;

	/* Listening before any sender starts. */
	if (fork())
		return;
	many_files();
	poll = epoll_create1(0);
	watch(poll, s, EPOLLIN, &s);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = waited(poll, events), i;

		for (i = 0; i < n; i++) {
			int c;

			if (events[i].data.ptr == &s) {
				c = accept4(s, 0, 0, SOCK_NONBLOCK);
				if (c >= 0)
					watch(poll, c, EPOLLIN, (void *)(long)c);
				continue;
			}
			c = (int)(long)events[i].data.ptr;
			while (recv(c, chunk, CHUNK, MSG_TRUNC | MSG_DONTWAIT) > 0) {
			}
			keep_window(c, clamp);
		}
	}
}

struct brief {
	long long start, left;
	char from[32], to[32];
	int socket;
};

static void begin(struct brief *b, int poll, int port, const char *cc, long long pace)
{
	struct sockaddr_in to = address(b->to, port);

	b->socket = sending(b->from, cc, pace, SOCK_NONBLOCK);
	if (connect(b->socket, (void *)&to, sizeof to) && errno != EINPROGRESS)
		die("connect");
	watch(poll, b->socket, EPOLLOUT, b);
}

static void go_on(struct brief *b, int poll)
{
	while (b->left > 0) {
		size_t n = b->left > CHUNK ? CHUNK : (size_t)b->left;
		ssize_t sent = send(b->socket, chunk, n, MSG_DONTWAIT);

		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (sent < 0) /* given up by the kernel */
			break;
		b->left -= sent;
	}
	epoll_ctl(poll, EPOLL_CTL_DEL, b->socket, 0);
}

/* The flows of a class, one per line and in the order of their starts. */
static struct brief *flows_of(const char *file, long long zero, int *count)
{
	char *text = text_of(file), *rest = text, *line;
	struct brief *all = 0;
	int n = 0;

	while ((line = strsep(&rest, "\n"))) {
		struct brief b = {.socket = -1};

		if (sscanf(line, "%lld %31s %31s %lld", &b.start, b.from, b.to, &b.left) != 4)
			continue;
		b.start += zero;
		if (!(n & (n - 1)))
			all = realloc(all, (n ? 2 * n : 1) * sizeof b);
		if (!all)
			die("memory");
		all[n++] = b;
	}
	free(text);
	*count = n;
	return all;
}

void brief_senders(long long zero, int port, const char *cc, long long pace, const char *file)
{
	int poll, timer, count, next = 0;
	struct brief *all;

	if (fork())
		return;
	prctl(PR_SET_TIMERSLACK, 1UL);
	many_files();
	all = flows_of(file, zero, &count);
	poll = epoll_create1(0);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	watch(poll, timer, EPOLLIN, &timer);
	for (;;) {
		struct epoll_event events[EVENTS];
		unsigned long long times;
		int n, i;

		while (next < count && all[next].start <= now_ns())
			begin(&all[next++], poll, port, cc, pace);
		if (next < count) {
			struct itimerspec at = {.it_value = {all[next].start / 1000000000LL,
							     all[next].start % 1000000000LL}};

			if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, 0))
				die("timerfd_settime");
		}
		n = waited(poll, events);
		for (i = 0; i < n; i++) {
			if (events[i].data.ptr != &timer)
				go_on(events[i].data.ptr, poll);
			else if (read(timer, &times, sizeof times) < 0 && errno != EAGAIN)
				die("timerfd");
		}
	}
}
