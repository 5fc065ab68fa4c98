// One bulk TCP flow inside the guest, observed every millisecond of virtual time.
//
//   flow sink PORT                                  accept connections and discard what they send
//   flow send HOST PORT CC START END GRID_MS OUT send from START to END (s after this process
//   began), write OUT
//
// OUT is CSV. A row is written when the clock is a multiple of GRID_MS, and for the two polls on
// either side of every change of the recovery state or of the slow-start threshold: the moment of a
// loss and the window before it are known to 1 ms. Time counts from the call of connect(), so a row
// at t is comparable with a simulated flow that starts its handshake at 0. Lines with '#' carry
// what holds for the whole flow.
//
// Build: cc -O2 -static -o flow flow.c
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000LL
#define POLL_NS 1000000LL

typedef struct tcp_info Info;
typedef struct { long ms; Info info; int written; } Poll;

static char chunk[1 << 22];

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static void sleep_until(long long ns) {
    struct timespec t = {ns / NS, ns % NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) {}
}

static void fail(const char* what) { perror(what); exit(1); }

static int sink(int port) {
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    signal(SIGCHLD, SIG_IGN);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void*)&a, sizeof a) || listen(s, 256)) fail("sink");
    for (;;) {
        int c = accept(s, 0, 0);
        if (c < 0) continue;
        if (!fork()) {
            // MSG_WAITALL: data is still taken off the socket as it arrives, but by the kernel's
            // own loop, which spares two switches between guest kernel and guest process per packet
            // (most of the cost of a run).
            while (recv(c, chunk, sizeof chunk, MSG_TRUNC | MSG_WAITALL) > 0) {}
            _exit(0);
        }
        close(c);
    }
}

static void row(FILE* f, Poll* p) {
    Info* i = &p->info;
    if (p->written) return;
    p->written = 1;
    fprintf(f, "%ld,%u,%u,%d,%u,%u,%u,%u,%u,%u,%u,%llu,%u\n", p->ms, i->tcpi_ca_state, i->tcpi_snd_cwnd,
            (int)i->tcpi_snd_ssthresh, i->tcpi_rtt, i->tcpi_rttvar, i->tcpi_unacked, i->tcpi_sacked, i->tcpi_lost,
            i->tcpi_retrans, i->tcpi_total_retrans, (unsigned long long)i->tcpi_bytes_acked, i->tcpi_snd_wnd);
}

static int send_flow(char** v) {
    const char *host = v[0], *cc = v[2], *out = v[6];
    double start = atof(v[3]), end = atof(v[4]);
    long grid = atol(v[5]);
    prctl(PR_SET_TIMERSLACK, 1UL); // wake at the asked nanosecond, not up to 50 us later
    long long t0 = now_ns() + (long long)(start * 1e9);
    sleep_until(t0);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(v[1]))};
    inet_aton(host, &a.sin_addr);
    if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc))) fail(cc);
    if (connect(s, (void*)&a, sizeof a)) fail("connect");
    long long connected = now_ns() - t0;
    pid_t pump = fork();
    if (!pump) {
        while (send(s, chunk, sizeof chunk, 0) > 0) {}
        _exit(0);
    }
    FILE* f = fopen(out, "w");
    if (!f) fail(out);
    setvbuf(f, 0, _IOFBF, 1 << 20);
    fprintf(f, "# cc=%s\n# start_s=%.3f\n# end_s=%.3f\n# connect_us=%lld\n", cc, start, end, connected / 1000);
    fprintf(f, "t_ms,ca,cwnd,ssthresh,srtt_us,rttvar_us,unacked,sacked,lost,retrans,total_retrans,bytes_acked,snd_wnd\n");
    long last = (long)((end - start) * 1000 + 0.5), late = 0;
    Poll before = {.written = 1}, p = {0};
    for (long ms = connected / POLL_NS + 1; ms <= last; ms++) {
        sleep_until(t0 + ms * POLL_NS);
        socklen_t n = sizeof p.info;
        p.ms = ms;
        p.written = 0;
        if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &p.info, &n)) fail("TCP_INFO");
        int first = !before.ms;
        int changed = !first && (p.info.tcpi_ca_state != before.info.tcpi_ca_state || p.info.tcpi_snd_ssthresh != before.info.tcpi_snd_ssthresh);
        if (changed) row(f, &before);
        if (changed || first || ms % grid == 0 || ms == last) row(f, &p);
        before = p;
    }
    late = (long)((now_ns() - t0) / 1000 - last * 1000);
    kill(pump, SIGKILL);
    waitpid(pump, 0, 0);
    Info* i = &p.info;
    fprintf(f, "# late_us=%ld\n# mss=%u\n# min_rtt_us=%u\n# busy_us=%llu\n# rwnd_limited_us=%llu\n# sndbuf_limited_us=%llu\n", late, i->tcpi_snd_mss,
            i->tcpi_min_rtt, (unsigned long long)i->tcpi_busy_time, (unsigned long long)i->tcpi_rwnd_limited, (unsigned long long)i->tcpi_sndbuf_limited);
    fprintf(f, "# data_segs_out=%u\n# bytes_retrans=%llu\n# dsack_dups=%u\n# reord_seen=%u\n# reordering=%u\n", i->tcpi_data_segs_out,
            (unsigned long long)i->tcpi_bytes_retrans, i->tcpi_dsack_dups, i->tcpi_reord_seen, i->tcpi_reordering);
    if (fclose(f)) fail(out);
    printf("FLOW %s goodput_mbps=%.4f retrans=%u cwnd=%u\n", cc, i->tcpi_bytes_acked * 8e-6 / (end - start), i->tcpi_total_retrans, i->tcpi_snd_cwnd);
    return 0;
}

int main(int c, char** v) {
    signal(SIGPIPE, SIG_IGN);
    if (c == 3 && !strcmp(v[1], "sink")) return sink(atoi(v[2]));
    if (c == 9 && !strcmp(v[1], "send")) return send_flow(v + 2);
    fprintf(stderr, "usage: flow sink PORT | flow send HOST PORT CC START END GRID_MS OUT\n");
    return 2;
}
