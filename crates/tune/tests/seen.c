/* Structures of bpf/seen.h with every field set to a number of its own, as hexadecimal lines. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#include "../bpf/seen.h"

static void show(const char *name, const void *at, size_t size)
{
	const u8 *byte = at;

	printf("%s ", name);
	for (size_t k = 0; k < size; k++)
		printf("%02x", byte[k]);
	printf("\n");
}

int main(void)
{
	struct filter f = { 1, 2, 3, { 443, 5001, 5201 } };
	struct network n = { 96 + 24, { [10] = 0xff, 0xff, 192, 0, 2 } };
	struct known k = { .watched = 1 };
	struct met m = { .time_us = 1, .cookie = 2, .kind = SEEN_MET, .mss = 3, .local_port = 4,
			 .remote_port = 5, .family = 6, .algorithm = "fp_bic" };
	struct seen s = { 1, 2, SEEN_ACK, 1, 1u << 31, 5 << 8, 6 << 10, 7, 8, 9 * 8, 10, 11, 12, 13,
			  14, 15, 16, 17, 18, 19, 20, 3, 22, 23 };
	struct fault x = { 1, FAULT_ACK, 96 + 24, { [10] = 0xff, 0xff, 192, 0, 2 }, 5, 6, 1u << 31,
			   1u << 30, 1u << 29, 2, { 7, 9 } };
	struct losses l = { 1, 2, 3, 4, 5, 6 };

	m.local[15] = 1;
	m.remote[0] = 0x20;
	show("filter", &f, sizeof(f));
	show("network", &n, sizeof(n));
	show("known", &k, sizeof(k));
	show("met", &m, sizeof(m));
	show("seen", &s, sizeof(s));
	show("fault", &x, sizeof(x));
	show("losses", &l, sizeof(l));
	return 0;
}
