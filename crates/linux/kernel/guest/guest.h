/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* What the files of the guest's first process share. */
#ifndef GUEST_H
#define GUEST_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1 << 22)
extern char chunk[CHUNK];

void die(const char *what);
long long now_ns(void);
void sleep_until(long long ns);
char *text_of(const char *name);

struct sockaddr_in address(const char *host, int port);
int listening(int port, int rcvbuf, int clamp);
void keep_window(int s, int clamp);
int sending(const char *from, const char *cc, long long pace, int flags);
void sink(int port, int rcvbuf, int clamp);
void sender(long long start, const char *from, const char *to, int port, const char *cc,
	    long long bytes, long long end, long long pace);

void brief_receivers(int port, int rcvbuf, int clamp);
void brief_senders(long long zero, int port, const char *cc, long long pace, const char *file);

#endif
