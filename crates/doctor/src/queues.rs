//! What it takes to space packets outside of TCP: queueing disciplines and a classifier, each put
//! on the loopback of a network namespace that is made for it and goes with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fullpipe_emulate::namespace::on_a_thread;
use fullpipe_emulate::netlink::Links;
use fullpipe_emulate::privilege::Privilege;
use nix::sched::{CloneFlags, unshare};
use nix::sys::utsname::uname;

use crate::Finding;

/// Tries all of it. Enters a user namespace where that takes one: to be called last, from a process
/// of one thread.
pub fn examine() -> Vec<Finding> {
    if let Err(e) = Privilege::take() {
        let finding = Finding::limited("queueing disciplines", format!("not tried: {e}"));
        let remedy = "run as root, or: sudo sysctl user.max_user_namespaces=10000";
        return vec![finding.remedy(remedy)];
    }
    let departures = "departure times of packets (fq)";
    let classes = "classes of packets (htb)";
    let classifier = "BPF classifier of what leaves";
    vec![
        of("sch_fq", departures, |links| {
            links.set_queue("lo", "fq", &[])
        }),
        of("sch_htb", classes, |links| {
            links.set_queue("lo", "htb", &htb())
        }),
        of("cls_bpf", classifier, |links| links.add_classifier("lo")),
    ]
}

/// `TCA_HTB_INIT` with `struct tc_htb_glob`: version, rate to quantum, class of the rest, two of no
/// meaning.
fn htb() -> Vec<u8> {
    let mut options = [24u16, 2].map(u16::to_ne_bytes).concat();
    options.extend([3u32, 10, 0, 0, 0].map(u32::to_ne_bytes).concat());
    options
}

/// One of them, by the module that it is in where it is not built in.
pub(crate) fn of(
    module: &str,
    name: &str,
    put: impl Fn(&mut Links) -> io::Result<()> + Send + Sync,
) -> Finding {
    // The trial would load it.
    if let Some(file) = not_loaded(module) {
        let found = format!("not loaded: {}", file.display());
        return Finding::limited(name, found).remedy(format!("sudo modprobe {module}"));
    }
    let tried = on_a_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        put(&mut Links::open()?)
    });
    match tried {
        Ok(()) => Finding::yes(name, "accepted"),
        Err(e) => {
            let found = match e.kind() {
                io::ErrorKind::NotFound => "the running kernel has none loaded".to_owned(),
                _ => e.to_string(),
            };
            let option = module.to_uppercase();
            let remedy = format!("sudo modprobe {module}, or a kernel with CONFIG_NET_{option}");
            Finding::limited(name, found).remedy(remedy)
        }
    }
}

/// The module's file where it is there and not loaded.
pub(crate) fn not_loaded(module: &str) -> Option<PathBuf> {
    let file = on_disk(module)?;
    (!Path::new("/sys/module").join(module).exists()).then_some(file)
}

fn on_disk(module: &str) -> Option<PathBuf> {
    let release = uname().ok()?.release().to_string_lossy().into_owned();
    let folder = Path::new("/lib/modules")
        .join(release)
        .join("kernel/net/sched");
    let files = fs::read_dir(folder).ok()?.flatten();
    // sch_fq.ko, sch_fq.ko.xz
    let is = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split(".ko").next() == Some(module)
    };
    files.map(|f| f.path()).find(is)
}
