/* The tuner's kernel side. One congestion control under several names, a program that chooses it
 * for new flows (sock_ops), one that spreads initial windows (tc), and one that lists running flows
 * and moves them (iter/tcp). */

#include "control.h"
#include "rules.h"
#include "spread.h"
#include "running.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
