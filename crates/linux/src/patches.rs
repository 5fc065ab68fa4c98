//! What is changed in a kernel's sources before it is built. TCP itself is untouched: calls are
//! added around its functions, and randomness comes from a seed.

use std::fs;
use std::path::Path;

use crate::error::LinuxError;

/// Applies every patch to the tree in `root`, whose timers shall have `hz` ticks a second.
///
/// # Errors
/// [`LinuxError::Patch`] where a source does not have what a patch is anchored to.
pub fn apply(root: &Path, hz: u32) -> Result<(), LinuxError> {
    change(root, "drivers/char/random.c", seeded)?;
    change(root, "net/ipv4/tcp_input.c", observed)?;
    change(root, "net/ipv4/tcp_rate.c", delivered)?;
    change(root, "net/ipv4/tcp_output.c", probed)?;
    change(root, "net/ipv4/Makefile", |s| {
        Some(s.to_owned() + "\nobj-y += fullpipe/\n")
    })?;
    change(root, "arch/um/Kconfig", |s| ticks(s, hz))?;
    change(root, "arch/um/os-Linux/main.c", dies_with_parent)?;
    change(root, "arch/um/os-Linux/skas/process.c", takes_guests_along)?;
    change(root, "arch/um/os-Linux/sigio.c", takes_helper_along)?;
    // CPUs with AMX save 11 KB of floating-point state; where a kernel reserves a fixed 2696 bytes
    // (6.1), it dies at the first process.
    change(root, "arch/x86/um/user-offsets.c", |s| {
        Some(s.replace("(HOST_FP_SIZE, 2696)", "(HOST_FP_SIZE, 12288)"))
    })
}

fn change(
    root: &Path,
    file: &'static str,
    patch: impl Fn(&str) -> Option<String>,
) -> Result<(), LinuxError> {
    let path = root.join(file);
    let text = fs::read_to_string(&path).map_err(LinuxError::io(&path))?;
    let text = patch(&text).ok_or(LinuxError::Patch { file })?;
    fs::write(&path, text).map_err(LinuxError::io(&path))
}

/// `detrand=N` on the kernel's command line: every random number of the kernel (sequence numbers,
/// time stamp offsets, hash keys, RED, PIE, BBR's phase) comes from splitmix64 seeded with N and
/// with the place of the call. What else in the kernel draws, and when, depends on the machine, and
/// would shift a stream that all share: BBR's phase differed between runs with one seed.
fn seeded(s: &str) -> Option<String> {
    let s = insert_before(
        s,
        "static void _get_random_bytes(void *buf, size_t len)\n{\n",
        GENERATOR,
    )?;
    let s = insert_before(
        &s,
        "\tfirst_block_len = min_t(size_t, 32, len);\n\tcrng_make_state(",
        FILLED,
    )?;
    let s = insert_after(
        &s,
        "void get_random_bytes(void *buf, size_t len)\n{\n",
        FILLED,
    )?;
    // In the macro that defines get_random_u8 and its like, after its declarations.
    let from = s.find("DEFINE_BATCHED_ENTROPY(type)")?;
    let declared = from + s[from..].find("unsigned long next_gen;")?;
    let line = declared + s[declared..].find('\n')? + 1;
    let batch = "\tif (detrand_on) \\\n\t\treturn (type)(sizeof(type) == 8 ? \
                 detrand_next(_RET_IP_) : detrand_next(_RET_IP_) >> 32); \\\n";
    Some(format!("{}{batch}{}", &s[..line], &s[line..]))
}

/// Of a function that fills `len` bytes at `buf`.
const FILLED: &str = "\tif (detrand_on) {\n\t\tu8 *c = buf;\n\n\t\twhile (len--)\n\t\t\t\
                      *c++ = detrand_next(_RET_IP_) >> 32;\n\t\treturn;\n\t}\n";

const GENERATOR: &str = "static bool detrand_on __read_mostly;
static u64 detrand_seed;
/* One stream for each caller: a full table shares its last place. */
static struct {
\tunsigned long site;
\tu64 state;
} detrand_streams[1024];
static u64 detrand_mix(u64 z)
{
\tz = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
\tz = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
\treturn z ^ (z >> 31);
}
static u64 detrand_next(unsigned long site)
{
\tunsigned int i = 0;
\tunsigned long flags;
\tu64 z;

\tlocal_irq_save(flags);
\twhile (i < ARRAY_SIZE(detrand_streams) - 1 && detrand_streams[i].site &&
\t       detrand_streams[i].site != site)
\t\ti++;
\tif (!detrand_streams[i].site) {
\t\tdetrand_streams[i].site = site;
\t\tdetrand_streams[i].state = detrand_mix(detrand_seed ^ site);
\t}
\tz = (detrand_streams[i].state += 0x9E3779B97F4A7C15ULL);
\tlocal_irq_restore(flags);
\treturn detrand_mix(z);
}
static int __init detrand_setup(char *s)
{
\tunsigned long long v;

\tif (!s || kstrtoull(s, 10, &v))
\t\treturn 0;
\tdetrand_seed = v * 0xD1342543DE82EF95ULL + 1;
\tdetrand_on = true;
\treturn 0;
}
early_param(\"detrand\", detrand_setup);

";

/// Calls of `senders.c` around the functions in which a sender's state changes.
fn observed(s: &str) -> Option<String> {
    let before = "\tu32 before = tcp_snd_cwnd(tcp_sk(sk));\n";
    let s = around(
        s,
        "static void tcp_update_rtt_min(struct sock *sk, u32 rtt_us, const int flag)",
        "\ttcp_update_rtt_min_plain(sk, rtt_us, flag);\n\tfullpipe_rtt(sk, rtt_us);\n",
    )?;
    let s = around(
        &s,
        "void tcp_enter_loss(struct sock *sk)",
        &format!("{before}\n\ttcp_enter_loss_plain(sk);\n\tfullpipe_changed(sk, 4, before);\n"),
    )?;
    let s = around(
        &s,
        "static void tcp_undo_cwnd_reduction(struct sock *sk, bool unmark_loss)",
        &format!(
            "{before}\tbool reduced = tcp_sk(sk)->prior_ssthresh;\n\n\
             \ttcp_undo_cwnd_reduction_plain(sk, unmark_loss);\n\
             \tif (reduced)\n\t\tfullpipe_changed(sk, 5, before);\n"
        ),
    )?;
    let s = around(
        &s,
        "void tcp_enter_cwr(struct sock *sk)",
        &format!(
            "{before}\tbool enters = inet_csk(sk)->icsk_ca_state < TCP_CA_CWR;\n\n\
             \ttcp_enter_cwr_plain(sk);\n\
             \tif (enters)\n\t\tfullpipe_changed(sk, 1, before);\n"
        ),
    )?;
    let s = around(
        &s,
        "void tcp_enter_recovery(struct sock *sk, bool ece_ack)",
        &format!(
            "{before}\tbool enters = !tcp_in_cwnd_reduction(sk);\n\n\
             \ttcp_enter_recovery_plain(sk, ece_ack);\n\
             \tif (enters)\n\t\tfullpipe_changed(sk, ece_ack ? 1 : 0, before);\n"
        ),
    )?;
    let s = around(
        &s,
        "static int tcp_ack(struct sock *sk, const struct sk_buff *skb, int flag)",
        "\tint result = tcp_ack_plain(sk, skb, flag);\n\n\
         \tfullpipe_acked(sk);\n\treturn result;\n",
    )?;
    let s = around(
        &s,
        "__u32 tcp_init_cwnd(const struct tcp_sock *tp, const struct dst_entry *dst)",
        "\treturn fullpipe_initial(tp, tcp_init_cwnd_plain(tp, dst));\n",
    )?;
    let s = around(
        &s,
        "void tcp_init_transfer(struct sock *sk, int bpf_op, struct sk_buff *skb)",
        "\ttcp_init_transfer_plain(sk, bpf_op, skb);\n\tfullpipe_opened(sk);\n",
    )?;
    insert_before(&s, "int sysctl_tcp_max_orphans", DECLARATIONS)
}

const DECLARATIONS: &str = "void fullpipe_acked(struct sock *sk);
void fullpipe_rtt(struct sock *sk, long us);
void fullpipe_changed(struct sock *sk, int kind, u32 before);
u32 fullpipe_initial(const struct tcp_sock *tp, u32 kernels);
void fullpipe_opened(struct sock *sk);

";

/// After every delivery, what its newest segment knows of the deliveries before it.
fn delivered(s: &str) -> Option<String> {
    let s = around(
        s,
        "void tcp_rate_gen(struct sock *sk, u32 delivered, u32 lost,\n\
         \t\t  bool is_sack_reneg, struct rate_sample *rs)",
        "\ttcp_rate_gen_plain(sk, delivered, lost, is_sack_reneg, rs);\n\
         \tif (rs->prior_mstamp)\n\t\tfullpipe_delivered(sk, rs->prior_delivered);\n",
    )?;
    let declaration = "void fullpipe_delivered(struct sock *sk, u32 prior);\n\n";
    insert_before(&s, "static void tcp_rate_gen_plain(", declaration)
}

fn probed(s: &str) -> Option<String> {
    let count = "\tNET_INC_STATS(sock_net(sk), LINUX_MIB_TCPLOSSPROBES);\n";
    let s = insert_before(s, count, "\tfullpipe_probed(sk);\n")?;
    let declaration = "void fullpipe_probed(struct sock *sk);\n";
    insert_before(&s, "static bool tcp_write_xmit(", declaration)
}

/// A user-mode kernel has 100 ticks a second, and no option for it.
fn ticks(s: &str, hz: u32) -> Option<String> {
    let at = s.find("config HZ\n\tint\n\tdefault ")? + "config HZ\n\tint\n\tdefault ".len();
    let end = at + s[at..].find('\n')?;
    Some(format!("{}{hz}{}", &s[..at], &s[end..]))
}

/// The kernel is a process: it ends with the one that started it, however that ends.
fn dies_with_parent(s: &str) -> Option<String> {
    let s = insert_before(s, "#include <stdio.h>\n", "#include <sys/prctl.h>\n")?;
    let main = s.find("int __init main(int argc, char **argv, char **envp)")?;
    let call = main + s[main..].find("\n\tset_stklim();\n")? + 1;
    let line = "\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n";
    Some(format!("{}{line}{}", &s[..call], &s[call..]))
}

/// The processes of the guest are processes too, traced by the kernel: they end with it
/// (`PTRACE_O_EXITKILL`).
fn takes_guests_along(s: &str) -> Option<String> {
    let option = "PTRACE_O_TRACESYSGOOD";
    s.contains(option)
        .then(|| s.replace(option, "(PTRACE_O_TRACESYSGOOD | 0x100000)"))
}

/// And so does the helper that watches files which cannot signal. 6.12 does this itself.
fn takes_helper_along(s: &str) -> Option<String> {
    if s.contains("os_set_pdeathsig") {
        return Some(s.to_owned());
    }
    let s = insert_before(s, "#include <unistd.h>\n", "#include <sys/prctl.h>\n")?;
    let line = "\tprctl(PR_SET_PDEATHSIG, SIGKILL);\n";
    insert_before(&s, "\tos_fix_helper_signals();\n", line)
}

fn insert_before(s: &str, anchor: &str, text: &str) -> Option<String> {
    let at = s.find(anchor)?;
    Some(format!("{}{text}{}", &s[..at], &s[at..]))
}

fn insert_after(s: &str, anchor: &str, text: &str) -> Option<String> {
    let at = s.find(anchor)? + anchor.len();
    Some(format!("{}{text}{}", &s[..at], &s[at..]))
}

/// Renames the function of this signature to `<name>_plain` and puts one of the old name after it.
fn around(s: &str, signature: &str, body: &str) -> Option<String> {
    let at = s.find(&format!("{signature}\n{{"))?;
    let end = at + s[at..].find("\n}\n")? + 3;
    let open = signature.find('(')?;
    let storage = if signature.starts_with("static") {
        ""
    } else {
        "static "
    };
    let plain = format!(
        "{storage}{}_plain{}",
        &signature[..open],
        &signature[open..]
    );
    let own = &s[at + signature.len()..end];
    Some(format!(
        "{}{plain}{own}\n{signature}\n{{\n{body}}}\n{}",
        &s[..at],
        &s[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_gets_another_around_it() {
        let s = "int x;\nvoid f(int a)\n{\n\tif (a) {\n\t}\n}\nint y;\n";
        let patched = around(s, "void f(int a)", "\tf_plain(a);\n").unwrap();
        assert_eq!(
            patched,
            "int x;\nstatic void f_plain(int a)\n{\n\tif (a) {\n\t}\n}\n\n\
             void f(int a)\n{\n\tf_plain(a);\n}\nint y;\n"
        );
        assert_eq!(around(s, "void g(int a)", ""), None);
    }

    #[test]
    fn ticks_are_replaced_and_nothing_else() {
        let s = "config HZ\n\tint\n\tdefault 100\n\nconfig NR\n\tdefault 100\n";
        let wanted = "config HZ\n\tint\n\tdefault 250\n\nconfig NR\n\tdefault 100\n";
        assert_eq!(ticks(s, 250).as_deref(), Some(wanted));
    }
}
